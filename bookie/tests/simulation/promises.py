"""What bookies have answered, and what they must not do any more after that.

    a fence is answered           no add of a writer is acknowledged by that bookie for that ledger
    a recovery hears "no entry"   no add of a writer for that entry is acknowledged by that bookie
    an add is acknowledged        "no entry" and "no ledger" are never said of it by that bookie
    an explicit LAC is stored     no LAC below it is told by that bookie for that ledger

And without an answer before:

    a LAC that is told            is known to the ledger's writer, or within its end
    a disk that is full           makes its bookie refuse writers soon, and nobody else: fences and
                                  reads never, recoveries while there is room for them

An answer counts when it is packed, whether its client gets it or not: what it says must be durable
by then. What was said of a ledger that is deleted is no promise any more. Crashes, restarts and
damage change nothing; a bookie that has lost its disk does not come back.
"""

import math

import trio

from magnetar.bookie.requests.session import run_of
from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.messages import Add, Read, ReadEntry, ReadLac, Status, WriteLac

NOTICE_SECONDS = 0.3
"""Within so long a bookie has seen that its disk is full (`bookies.py`)."""
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
        self.confirmed = lambda ledger_id: math.inf
        """The last entry of a ledger that anybody may take for confirmed."""
        self.explicit_lacs = {}
        """The highest that is stored, by bookie and ledger."""
        self._full_from = {}
        """When bookies must know that their disks are full."""
        self._no_room_until = {}
        """When they must know that there is room for recoveries."""
        self._deleted = set()
        self._when_asked = {}
        """What had been promised when a request came."""

    def filled(self, bookie, *, full, spare):
        """The disk of a bookie is full now, or is not; and has room for recoveries, or has not."""
        soon = trio.current_time() + NOTICE_SECONDS
        self._full_from[bookie] = soon if full else math.inf
        if not spare:
            self._no_room_until[bookie] = math.inf
        elif bookie in self._no_room_until:
            self._no_room_until[bookie] = soon

    def asked(self, bookie, event):
        """A request has come, or a row of adds."""
        request = getattr(event, "request", event)
        if isinstance(request, Add | Adds):
            fact = trio.current_time() >= self._full_from.get(bookie, math.inf)
        elif isinstance(request, Read):
            ledger, entry = request.ledger_id, request.entry_id
            fact = (
                (bookie, ledger, entry) in self.stored,
                self.explicit_lacs.get((bookie, ledger), -1),
            )
        elif isinstance(request, ReadLac):
            fact = self.explicit_lacs.get((bookie, request.ledger_id), -1)
        else:
            return
        self._when_asked[id(event)] = event, fact

    def added(self, bookie, event, run, recovery, status):
        """An add is answered."""
        _, was_full = self._when_asked.pop(id(event))
        last = run.first + run.count - 1
        kind = "recovery add" if recovery else "add"
        self._trace.note(f"{bookie} {kind} {run.ledger_id}:{run.first}-{last} {status.value}")
        if status is Status.READ_ONLY and recovery:
            room = trio.current_time() > self._no_room_until.get(bookie, -math.inf)
            self._verdict.require(not room, f"{bookie} has room, and refuses a recovery")
        if status is not Status.OK:
            return
        if was_full and not recovery:
            self._verdict.broken(f"{bookie} is full and took {run.ledger_id}:{run.first}")
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
            self.added(bookie, call, run_of(request), request.recovery, response.status)
            return
        _, fact = self._when_asked.pop(id(call), (None, None))
        if isinstance(request, WriteLac):
            self._lac_stored(bookie, request, response.status)
            return
        if response.status is Status.READ_ONLY:
            self._verdict.broken(f"{bookie} is read-only, and answers no {request!r:.60}")
        if isinstance(request, ReadLac) and response.status is Status.OK:
            self._lac_told(bookie, request, packed_lac(response.packet), fact)
        elif isinstance(request, Read) and isinstance(response, ReadEntry):
            was_stored, told = fact
            if response.lac is not None and response.status is Status.OK:
                self._lac_told(bookie, request, response.lac, told)
            self._read_answered(bookie, request, response, was_stored)

    def _lac_stored(self, bookie, request, status):
        self._trace.note(f"{bookie} explicit LAC {request.ledger_id}:{request.lac} {status.value}")
        if status is Status.OK and request.ledger_id not in self._deleted:
            key = bookie, request.ledger_id
            self.explicit_lacs[key] = max(self.explicit_lacs.get(key, -1), request.lac)

    def _lac_told(self, bookie, request, lac, told):
        ledger = request.ledger_id
        self._trace.note(f"{bookie} tells LAC {ledger}:{lac}")
        if ledger in self._deleted:
            return
        self._verdict.require(lac >= told, f"{bookie} had the LAC {ledger}:{told}, and tells {lac}")
        confirmed = self.confirmed(ledger)
        self._verdict.require(
            lac <= confirmed,
            f"{bookie} tells the LAC {ledger}:{lac}, and {confirmed} is confirmed",
        )

    def _read_answered(self, bookie, request, response, was_stored):
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


def packed_lac(packet):
    """The LAC in the packet of its client; -1 without one."""
    return int.from_bytes(packet[8:16], "big", signed=True) if packet else -1
