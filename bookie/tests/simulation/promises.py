"""What bookies have answered, and what they must not do any more after that.

    a fence is answered           no add of a writer is acknowledged by that bookie for that ledger
    a recovery hears "no entry"   no add of a writer for that entry is acknowledged by that bookie
    an add is acknowledged        "no entry" and "no ledger" are never said of it by that bookie

An answer counts when it is packed, whether its client gets it or not: what it says must be durable
by then. What was said of a ledger that is deleted is no promise any more. Crashes, restarts and
damage change nothing; a bookie that has lost its disk does not come back.
"""

from magnetar.bookie.requests.session import run_of
from magnetar.bookie.rpc.messages import Add, Read, ReadEntry, Status

DENIALS = (Status.NO_ENTRY, Status.NO_LEDGER)


class Promises:
    """See the module's docstring."""

    def __init__(self, trace, verdict):
        self._trace = trace
        self._verdict = verdict
        self.fenced = set()
        """(bookie, ledger)"""
        self.denied = set()
        """(bookie, ledger, entry)"""
        self.stored = set()
        """(bookie, ledger, entry)"""
        self.damaged = set()
        """Bookies whose disks have lost something, or all."""
        self.stock = set()
        """Bookies that deny entries before their fence is durable, as Apache's do."""
        self._deleted = set()
        self._stored_when_asked = {}

    def asked(self, bookie, event):
        request = getattr(event, "request", None)
        if isinstance(request, Read):
            key = bookie, request.ledger_id, request.entry_id
            self._stored_when_asked[id(event)] = (event, key in self.stored)

    def added(self, bookie, run, recovery, status):
        """An add is answered."""
        last = run.first + run.count - 1
        kind = "recovery add" if recovery else "add"
        self._trace.note(f"{bookie} {kind} {run.ledger_id}:{run.first}-{last} {status.value}")
        if status is not Status.OK:
            return
        for entry in range(run.first, last + 1):
            key = bookie, run.ledger_id, entry
            if recovery or run.ledger_id in self._deleted:
                pass
            elif key[:2] in self.fenced:
                self._verdict.broken(f"{bookie} was fenced and took {run.ledger_id}:{entry}")
            elif key in self.denied:
                self._verdict.broken(f"{bookie} had denied {run.ledger_id}:{entry} to a recovery")
            self.stored.add(key)

    def answered(self, bookie, call, response):
        """Any other request is answered."""
        request = call.request
        if isinstance(request, Add):
            self.added(bookie, run_of(request), request.recovery, response.status)
        if not isinstance(request, Read) or not isinstance(response, ReadEntry):
            return
        _, was_stored = self._stored_when_asked.pop(id(call))
        kind = "fence" if request.fence else "read"
        what = f"{request.ledger_id}:{request.entry_id}"
        self._trace.note(f"{bookie} {kind} {what} {response.status.value}")
        key = bookie, request.ledger_id, request.entry_id
        denies = response.status in DENIALS
        if request.ledger_id in self._deleted:
            return
        if denies and was_stored:  # damage is no excuse: it is "i/o error"
            self._verdict.broken(f"{bookie} denies {what}, which it has acknowledged")
        if denies and request.entry_id >= 0 and bookie in self.stock:
            return
        if request.fence and (denies or response.status is Status.OK):
            self.fenced.add(key[:2])
        if request.high_priority and denies and request.entry_id >= 0:
            self.denied.add(key)

    def forget(self, ledger_id):
        """A ledger was deleted."""
        self._deleted.add(ledger_id)

    def lost(self, bookie):
        """A bookie has lost its disk, or a part of it."""
        self.damaged.add(bookie)

    def holders(self, ledger_id, entry, bookies):
        """Those of these bookies that have acknowledged an entry."""
        return [each for each in bookies if (each, ledger_id, entry) in self.stored]
