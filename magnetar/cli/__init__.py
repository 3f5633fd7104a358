"""The command line: `magnetar standalone | config | version`.

Invariant: a mistake of the operator ends in one sentence on standard error and exit code 2, never
in a traceback. Commands import what they need when they run, so that the server starts fast.
"""


def main() -> None:
    import sys

    from magnetar.cli.root import root
    from magnetar.trouble import OperatorError

    try:
        root(prog_name="magnetar")
    except OperatorError as error:
        print(f"magnetar: {error}", file=sys.stderr)
        sys.exit(2)
