"""Ledgers for programs that wait for them: Spark's workers and the tools. Neither trio nor a loop.

    with open_ledger(ledger_id, source) as ledger:
        for run in ledger.read(0, ledger.last_confirmed()):
            ...

`read_handle.py` is the way in; the README of `bookie/` says what the other modules are.
"""
