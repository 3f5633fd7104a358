"""What writers gave and were told, and what must be true of it at every moment.

NoDivergence                no entry beyond the end of a closed ledger is acknowledged, ever
AllAckedReadable            when an entry is acknowledged, an ack quorum of the bookies that the
                            metadata name for it has acknowledged it
NoOutOfOrder                every read gives the bytes that the writer gave for that id
callbacks                   in the order of ids, each once, and after an error no success
metadata                    states go from OPEN over IN_RECOVERY to CLOSED, or skip; segments are
                            added or the last one is replaced; a closed ledger never changes
AllCommittedReachAckQuorum  in the end each entry of a closed ledger is at an ack quorum, but for
                            bookies that have lost it with their disk (`world.py` reads them)

(The invariants of the TLA+ specification of BookKeeper's protocol.)
"""

from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.layout import HIERARCHICAL

ORDER = [ledger_metadata.OPEN, ledger_metadata.IN_RECOVERY, ledger_metadata.CLOSED]
PASSWORD = b"simulated"


class AppendedRun:
    """One run of a writer, and its callback."""

    def __init__(self, history, number, last, count):
        self.number = number
        self.last = last
        self.count = count
        self.refused = False
        self.inside = True
        self._history = history
        self._reports = 0

    def done(self, error):
        self._reports += 1
        name = f"{self._history.ledger_id}:{self.last}"
        self._history.require(not self.inside, f"{name} is reported from within append")
        self._history.require(self._reports == 1, f"{name} is reported twice")
        self._history.reported(self, error)


class LedgerHistory:
    """One ledger, as its writer and its metadata tell it."""

    def __init__(self, ledger_id, trace, promises, verdict, on_replaced):
        self.ledger_id = ledger_id
        self._on_replaced = on_replaced
        self.writer = None
        self.on_new_segment = None
        """Called once, with the next change of the ensemble."""
        self.payloads = []
        self.acked = -1
        """The last entry that was acknowledged to the writer."""
        self.metadata = None
        """The last ones, also when the ledger was deleted."""
        self.deleting = self.deleted = False
        """Whether somebody has begun to delete it; and whether it is gone."""
        self.failed = False
        self._trace = trace
        self._promises = promises
        self.require = verdict.require
        self._runs = 0
        self._reported = -1
        """The number of the last run that was reported."""

    # -- the writer ---------------------------------------------------------------------------

    def append(self, writer, payloads):
        """Have a run appended; returns its last id."""
        expected = len(self.payloads)
        run = AppendedRun(self, self._runs, expected + len(payloads) - 1, len(payloads))
        self._runs += 1
        self.payloads += payloads
        first = writer.append(payloads, run.done)
        run.refused = first < expected
        run.inside = False
        self.require(first <= expected, f"{self.ledger_id}: {expected} got the id {first}")
        if run.refused:  # a run before it was refused too, and nobody was told so far
            del self.payloads[expected:]
        return run.last

    def reported(self, run, error):
        """A run was acknowledged, or has failed."""
        self.require(
            run.number == self._reported + 1, f"{self.ledger_id}:{run.last} is reported early"
        )
        self._reported = run.number
        if error is not None:
            self._trace.note(f"writer {self.ledger_id} fails at {run.last}: {error!r:.50}")
            self.failed = True
            return
        self.require(not self.failed, f"{self.ledger_id}:{run.last} succeeds after a failure")
        self.require(not run.refused, f"{self.ledger_id}:{run.last} succeeds without an id")
        self._trace.note(f"writer {self.ledger_id} has {run.last}")
        self.acked = run.last
        self.check_end()
        for entry in range(run.last - run.count + 1, run.last + 1):
            self.check_quorum(entry)

    # -- the metadata -------------------------------------------------------------------------

    def removed(self):
        """The metadata are gone."""
        self.require(self.deleting, f"nobody deletes ledger {self.ledger_id}")
        self._trace.note(f"ledger {self.ledger_id} is deleted")
        self.deleted = True

    def changed(self, ledger):
        """The metadata are others now."""
        self.require(not self.deleted, f"ledger {self.ledger_id} was deleted, and comes back")
        before, self.metadata = self.metadata, ledger
        state = ledger_metadata.LedgerMetadata.State.Name(ledger.state)
        firsts = [segment.firstEntryId for segment in ledger.segment]
        self._trace.note(f"ledger {self.ledger_id} {state} {ledger.lastEntryId} {firsts}")
        if before is None:
            return
        name = f"ledger {self.ledger_id}"
        if before.state == ledger_metadata.CLOSED:
            same = (ledger.state, ledger.lastEntryId, ledger.length) == (
                before.state, before.lastEntryId, before.length
            )  # fmt: skip
            self.require(same, f"{name} changes after its end")
        self.require(ORDER.index(before.state) <= ORDER.index(ledger.state), f"{name} goes back")
        was, now = segments(before), segments(ledger)
        self.require(len(now) >= len(was), f"{name} has fewer segments")
        self._check_replicated(name, was, now, closed=before.state == ledger_metadata.CLOSED)
        self.require(
            now[len(was) - 1][0] == was[-1][0], f"{name} has its last segment somewhere else"
        )
        for first, members in now:
            self.require(len(set(members)) == len(members), f"{name} has a bookie twice in {first}")
        if self.on_new_segment is not None and now != was:
            call, self.on_new_segment = self.on_new_segment, None
            call()
        if ledger.state == ledger_metadata.CLOSED:
            self.require(
                ledger.lastEntryId >= was[-1][0] - 1,
                f"{name} ends at {ledger.lastEntryId}, before its last segment {was[-1][0]}",
            )
            self.check_end()
            for entry in range(ledger.lastEntryId + 1):
                self.check_quorum(entry)

    def _check_replicated(self, name, was, now, *, closed):
        """Whoever replaces a bookie of a segment that has ended has copied all of its entries."""
        view = self.view()
        for place, (first, members) in enumerate(was if closed else was[:-1]):
            self.require(now[place][0] == first, f"{name} has old segments somewhere else")
            _, end = view.segment_of(first)
            last = self.metadata.lastEntryId if end is None else end
            for position, (old, new) in enumerate(zip(members, now[place][1], strict=True)):
                if old == new:
                    continue
                self._on_replaced(self.ledger_id)
                self._trace.note(f"{name} has {new} in the place of {old} from {first} on")
                for entry in range(first, last + 1):
                    if view.striping.has(position, entry):
                        held = self._promises.holders(self.ledger_id, entry, [new])
                        self.require(held, f"{name} is said to have {entry} at {new}")

    @property
    def closed(self):
        """Whether the metadata say that it has ended."""
        return self.metadata is not None and self.metadata.state == ledger_metadata.CLOSED

    @property
    def confirmed(self):
        """The last entry that the writer knows to be stored: more than was acknowledged to its
        user, if a run was stored in part.
        """
        return -1 if self.writer is None else self.writer.last_confirmed

    # -- what holds at every moment -----------------------------------------------------------

    def check_end(self):
        if self.closed:
            last = self.metadata.lastEntryId
            self.require(
                last >= self.acked,
                f"ledger {self.ledger_id} ends at {last}; {self.acked} was acked",
            )

    def check_quorum(self, entry):
        view = self.view()
        ensemble, _ = view.segment_of(entry)
        members = [ensemble[position] for position in view.striping.write_set(entry)]
        holders = self._promises.holders(self.ledger_id, entry, members)
        self.require(
            len(holders) >= view.striping.ack,
            f"{self.ledger_id}:{entry} is committed, and of {members} only {holders} have it",
        )

    def view(self):
        return LedgerView(self.ledger_id, self.metadata, PASSWORD)

    def check_payloads(self, first, payloads):
        """What a reader was given."""
        expected = self.payloads[first : first + len(payloads)]
        self.require(
            payloads == expected, f"ledger {self.ledger_id} gives other bytes from {first}"
        )


def segments(ledger):
    return [(each.firstEntryId, tuple(each.ensembleMember)) for each in ledger.segment]


class Histories:
    """All ledgers of a run."""

    def __init__(self, trace, promises, verdict):
        self.ledgers = {}
        self.on_replaced = lambda ledger_id: None
        """Called when a closed segment of a ledger gets another bookie."""
        self._trace = trace
        self._promises = promises
        self._verdict = verdict
        self.require = verdict.require

    def of(self, ledger_id):
        found = self.ledgers.get(ledger_id)
        if found is None:
            found = self.ledgers[ledger_id] = LedgerHistory(
                ledger_id, self._trace, self._promises, self._verdict, self.on_replaced
            )
        return found

    def collected(self, bookie_id, ledger_id):
        """A bookie drops what it has of a ledger."""
        self._trace.note(f"{bookie_id} drops ledger {ledger_id}")
        gone = ledger_id in self.ledgers and self.of(ledger_id).deleted
        self.require(gone, f"{bookie_id} drops ledger {ledger_id}, which exists")

    def confirmed(self, ledger_id):
        """The last entry of a ledger that anybody may take for confirmed."""
        history = self.of(ledger_id)
        return max(history.confirmed, history.metadata.lastEntryId if history.closed else -1)

    def existing(self):
        """Those that are not deleted."""
        return [each for each in self.ledgers.values() if not each.deleted]

    def metadata_changed(self, path, before, after):
        """Something was written to the store."""
        ledger_id = HIERARCHICAL.id_of(path.removeprefix("/ledgers/"))
        if ledger_id is None:
            return
        if after is None:
            self._promises.forget(ledger_id)
            self.of(ledger_id).removed()
            return
        self.require(
            before is None or after.version == before.version + 1, f"{path} skips a version"
        )
        ledger, _ = ledger_metadata.decode(after.value)
        self.of(ledger_id).changed(ledger)
