"""Bookies that tell of a fence as Apache's do.

A fencing read of an entry that is not there is answered before the fence is durable; only what is
there waits for it (`ReadEntryProcessor.java` of BookKeeper 4.18). So a denial is no promise: after
a loss of power the bookie may take the entry from the old writer. What keeps a ledger's end then is
the first step of a recovery, the fencing reads of the last entry, as far as those wait.

Apache's do not wait either where the ledger has no entry at all, and replay loses a fence that came
before any key. Against that no client can do anything; so here these fences wait, and are kept.
"""

from magnetar.bookie.rpc.messages import Read, ReadEntry, Status
from magnetar.core.kernel.errors import BrokerError


class StockFences:
    """Answers those reads in the place of a session."""

    def __init__(self, bookie, running, ledgers):
        self._bookie = bookie
        self._running = running
        self._ledgers = ledgers

    def answer(self, call, wire):
        """Deny what is not there, and whether that was done."""
        request = getattr(call, "request", None)
        if not isinstance(request, Read) or not request.fence or request.entry_id < 0:
            return False
        if self._is_here(request.ledger_id, request.entry_id):
            return False
        try:
            self._ledgers.fence(request.ledger_id, request.master_key, lambda error: None)
            state = self._ledgers.known(request.ledger_id)
        except BrokerError:
            return False
        if state.limbo:
            return False
        wire.reply(call, ReadEntry(Status.NO_ENTRY, request.ledger_id, request.entry_id))
        if not state.fence_synced:
            self._bookie.denied_early()
        return True

    def _is_here(self, ledger_id, entry_id):
        if self._ledgers.entry_at_once(ledger_id, entry_id) is not None:
            return True
        return self._running.storage.locations.find(ledger_id, entry_id) is not None
