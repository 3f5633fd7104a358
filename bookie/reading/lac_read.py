"""How far an open ledger may be read: the last add confirmed (LAC), from its bookies. Pure.

Nothing is fenced. Each bookie of the last ensemble tells the LAC that the ledger's writer told it
last: within the last entry that it has, and perhaps in a packet of its own (an explicit LAC). The
highest is the answer once bookies enough have answered that no entry confirmed before can be
unknown to all of them (`Striping.is_covered`; `ReadLastConfirmedOp.java` of BookKeeper 4.18). The
last entry itself is mostly not confirmed by what the bookies know: the writer tells that with the
next entry, or with an explicit LAC.

Version 3 of the protocol, which alone has this request.
"""

from __future__ import annotations

from magnetar.bookie.format.digests import open_entry, open_lac
from magnetar.bookie.format.entries import last_confirmed_of
from magnetar.bookie.reading.errors import MISSING_STATUSES, Answer, Trouble, answer_to
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.rpc import version3
from magnetar.bookie.rpc.messages import Lac, ReadLac, Status, StatusOnly
from magnetar.core.kernel.errors import Corrupted, StorageFailed, WireError


class LacRead:
    """See the module's docstring."""

    def __init__(self, ledger: ReadableLedger, options: ReadOptions) -> None:
        self.lac = ledger.confirmed_at_least
        """The highest that was told so far."""
        self._ledger = ledger
        self._timeout_seconds = options.timeout_seconds
        self._ensemble = ledger.last_ensemble
        self._asked: dict[str, int] = {}
        """The positions of bookies that have not answered yet."""
        self._heard_at = 0.0
        self._covered: set[int] = set()
        self._answers: dict[str, Answer] = {}
        """Of bookies whose answer does not count."""

    @property
    def finished(self) -> bool:
        """Whether enough is known; `StorageFailed` if that cannot be any more."""
        if self._ledger.striping.is_covered(self._covered):
            return True
        if len(self._covered) + len(self._answers) < len(self._ensemble):
            return False
        told = "; ".join(f"{bookie} {answer.text}" for bookie, answer in self._answers.items())
        raise StorageFailed(
            f"how far ledger {self._ledger.ledger_id} may be read is not known: {told}"
        )

    @property
    def waited_for(self) -> list[str]:
        """The bookies whose answers are not needed any more."""
        return list(self._asked)

    def requests(self, now: float) -> list[tuple[str, bytes]]:
        if self._asked or self._covered or self._answers:
            return []
        self._heard_at = now
        self._asked = {bookie: place for place, bookie in enumerate(self._ensemble)}
        request = ReadLac(self._ledger.ledger_id)
        return [
            (bookie, version3.pack_request(place, request)) for bookie, place in self._asked.items()
        ]

    def heard(self, bookie: str, now: float) -> None:
        """Nothing waits for parts of an answer: it is short."""

    def answered(self, bookie: str, frame: bytes, now: float) -> None:
        place, response = version3.parse_response(frame)
        if self._asked.get(bookie) != place or not isinstance(response, Lac | StatusOnly):
            raise WireError("a response to something that was not asked")
        del self._asked[bookie]
        if isinstance(response, Lac) and response.status is Status.OK:
            try:
                self.lac = max(self.lac, self._lac_in(response))
            except Corrupted as error:
                self._answers[bookie] = Answer(Trouble.DAMAGED, f"sends damage: {error}")
                return
        elif response.status not in MISSING_STATUSES:
            self._answers[bookie] = answer_to(response.status)
            return
        self._covered.add(place)

    def _lac_in(self, response: Lac) -> int:
        """The highest LAC that a bookie knows."""
        found, ledger = -1, self._ledger
        if response.packet:
            found = open_lac(ledger.digest, ledger.ledger_id, response.packet)
        if entry := response.last_entry:
            entry_id = int.from_bytes(entry[8:16], "big")
            open_entry(ledger.digest, ledger.ledger_id, entry_id, entry)
            found = max(found, last_confirmed_of(entry))
        return found

    def lost(self, bookie: str, reason: str, now: float, *, worked: bool) -> None:
        if self._asked.pop(bookie, None) is not None:
            self._answers[bookie] = Answer(Trouble.UNREACHABLE, reason)

    def deadline(self, now: float) -> float | None:
        return self._heard_at + self._timeout_seconds if self._asked else None

    def overdue(self, now: float) -> list[str]:
        return list(self._asked)
