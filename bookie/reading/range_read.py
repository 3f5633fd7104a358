"""Reading a range of entries from the bookies that store them, without a socket or a clock. Pure.

The range is cut into pieces (`pieces.py`), and several are on their way at a time. Where every
bookie of an ensemble has all entries (E = W), a piece is a batch of entries, and the pieces go to
the bookies in turn; otherwise each entry is a piece of its own. Entries are taken in order.

Bookies are asked by version 2 of the protocol. Its responses to single reads are matched by ledger
and entry: a bookie is never asked for an entry while it is being asked for it.

Time is that of the caller, and stands still while he does not read (`exchange.py`). A bookie is
silent from the last byte that it sent, or the request, whichever was later:

    speculative_seconds   whoever waits for it asks the next replica as well
    timeout_seconds       its connection is given up, and with it all that was asked for there

Invariant: the entries taken are `first`, `first + 1`, ... `last`, each once, each checked.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from magnetar.bookie.reading import answers
from magnetar.bookie.reading.errors import Answer, Trouble, answer_to
from magnetar.bookie.reading.health import BookieHealth
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.reading.options import ReadOptions
from magnetar.bookie.reading.pieces import RangePiece
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import BatchRead, Read, ReadEntry, Status
from magnetar.core.kernel.errors import Corrupted, WireError

BATCH_ROOM: Final = 2
"""A batch may have so many times the bytes that are expected, for entries differ in size."""


class Entries(Struct, frozen=True):
    """Payloads of consecutive entries."""

    first: int
    payloads: list[bytes]


class _Asked(Struct, frozen=True):
    """A request on its way."""

    piece: RangePiece
    first: int
    at: float


class RangeRead:
    """See the module's docstring."""

    def __init__(
        self,
        ledger: ReadableLedger,
        first: int,
        last: int,
        options: ReadOptions,
        health: BookieHealth,
    ) -> None:
        self.next = first
        """The first entry that was not taken yet."""
        self._ledger = ledger
        self._cut_at = first
        self._last = last
        self._options = options
        self._health = health
        self._batched = options.batches and ledger.is_everywhere
        self._pieces: deque[RangePiece] = deque()
        self._pieces_cut = 0
        self._asked: dict[str, dict[int, _Asked]] = {}
        """By bookie, and by entry id, or, for batches, by the complement of the request's id."""
        self._heard: dict[str, float] = {}
        self._requests = 0
        self._outgoing: list[tuple[str, bytes]] = []

    @property
    def finished(self) -> bool:
        return self.next > self._last

    @property
    def waited_for(self) -> list[str]:
        """The bookies that have not answered all that they were asked."""
        return [bookie for bookie, asked in self._asked.items() if asked]

    # -- out ----------------------------------------------------------------------------------

    def take(self) -> Entries | None:
        """The next entries, if they are here; `UnreadEntry` if none of their bookies has them."""
        if not self._pieces:
            return None
        piece = self._pieces[0]
        if piece.error is not None and not piece.payloads:
            raise piece.error
        if not piece.payloads:
            return None
        taken = Entries(self.next, piece.payloads)
        self.next += len(taken.payloads)
        piece.payloads = []
        if piece.whole:
            self._pieces.popleft()
        return taken

    def requests(self, now: float) -> list[tuple[str, bytes]]:
        """What is to be sent now: a bookie and the body of a frame."""
        while self._cut_at <= self._last and len(self._pieces) < self._pieces_max():
            piece = self._cut(now)
            self._pieces.append(piece)
            self._ask(piece, now)
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def _pieces_max(self) -> int:
        size = self._options.batch_bytes if self._batched else self._ledger.entry_bytes
        return max(2, min(self._options.read_ahead_bytes // size, self._options.requests_max))

    def _cut(self, now: float) -> RangePiece:
        """Cut the next piece, which has one ensemble."""
        first = self._cut_at
        bookies = self._ledger.bookies(first)
        last = first
        if self._batched and all(map(self._health.may_send_batches, bookies)):
            last += max(self._options.batch_bytes // self._ledger.entry_bytes, 1) - 1
            end = self._ledger.segment_end(first)
            last = min(last, self._last if end is None else min(end, self._last))
            turn = self._pieces_cut % len(bookies)
            bookies = self._ledger.ensemble(first)
            bookies = bookies[turn:] + bookies[:turn]
        self._cut_at = last + 1
        self._pieces_cut += 1
        return RangePiece(first, last, self._health.ordered(bookies, now))

    def _ask(self, piece: RangePiece, now: float) -> None:
        """Ask the next bookie for what a piece lacks; if none is left, and none is asked, it has
        failed.
        """
        bookie = piece.candidate()
        if bookie is None:
            if not piece.waiting:
                piece.fail(self._ledger.ledger_id)
            return
        ledger_id, first = self._ledger.ledger_id, piece.next
        if self._batched and self._health.may_send_batches(bookie):
            self._requests += 1
            key, size = ~self._requests, BATCH_ROOM * self._options.batch_bytes
            count = piece.last - first + 1
            body = version2.pack_request(BatchRead(ledger_id, first, self._requests, count, size))
        else:
            key = first
            body = version2.pack_request(Read(ledger_id, first))
        piece.waiting[bookie] = now
        self._asked.setdefault(bookie, {})[key] = _Asked(piece, first, now)
        self._outgoing.append((bookie, body))

    # -- in -----------------------------------------------------------------------------------

    def heard(self, bookie: str, now: float) -> None:
        """A bookie sent something, perhaps no whole frame."""
        self._heard[bookie] = now

    def answered(self, bookie: str, frame: bytes, now: float) -> None:
        """A bookie sent a response; `WireError` if it is none to what it was asked."""
        if frame[1:2] == bytes([version2.BATCH_READ]):
            status, request_id, data = answers.batch_in(frame)
            asked = self._answered(bookie, ~request_id)
            if asked is not None:
                self._take_batch(bookie, asked, status, data)
        else:
            response = version2.parse_response(frame)
            if not isinstance(response, ReadEntry) or response.ledger_id != self._ledger.ledger_id:
                raise WireError("a response to something that was not asked")
            asked = self._answered(bookie, response.entry_id)
            if asked is not None:
                self._take_entry(bookie, asked, response)
        if asked is not None:
            self._go_on(asked.piece, now)

    def _answered(self, bookie: str, key: int) -> _Asked | None:
        """What a response is to; None if it comes too late to be of use."""
        asked = self._asked.get(bookie, {}).pop(key, None)
        if asked is not None:
            asked.piece.waiting.pop(bookie, None)
        return asked

    def _take_batch(self, bookie: str, asked: _Asked, status: Status, data: bytes) -> None:
        if status is Status.BAD_REQUEST and self._health.sends_no_batches(bookie):
            return  # and is asked again
        if status is not Status.OK:
            asked.piece.refused(bookie, asked.first, answer_to(status))
            return
        self._health.sent_batch(bookie)
        payloads, damage = answers.open_records(self._ledger, asked.first, data)
        end = asked.first + len(payloads)
        if asked.piece.take(asked.first, payloads):
            self._health.forgive(bookie)
        if damage:
            asked.piece.refused(bookie, end, Answer(Trouble.DAMAGED, f"sends damage: {damage}"))
        elif not payloads:
            answer = Answer(Trouble.UNREACHABLE, "answers with an empty batch")
            asked.piece.refused(bookie, asked.first, answer)

    def _take_entry(self, bookie: str, asked: _Asked, response: ReadEntry) -> None:
        if response.entry is None:
            asked.piece.refused(bookie, asked.first, answer_to(response.status))
            return
        try:
            payload = answers.open_one(self._ledger, asked.first, response.entry)
        except Corrupted as error:
            answer = Answer(Trouble.DAMAGED, f"sends damage: {error}")
            asked.piece.refused(bookie, asked.first, answer)
            return
        self._health.forgive(bookie)
        asked.piece.take(asked.first, [payload])

    def _go_on(self, piece: RangePiece, now: float) -> None:
        if not piece.whole and not piece.waiting and piece.error is None:
            self._ask(piece, now)

    def lost(self, bookie: str, reason: str, now: float, *, worked: bool) -> None:
        """A connection ended, or could not be made. One that `worked` is made once more for each
        piece that was asked for on it.
        """
        lost = self._asked.pop(bookie, {})
        if worked and any(key < 0 for key in lost):
            self._health.sends_no_batches(bookie)
        if not worked:
            self._health.avoid(bookie, now)
        for asked in lost.values():
            piece = asked.piece
            piece.waiting.pop(bookie, None)
            if not worked or bookie in piece.broken:
                piece.answers[bookie] = Answer(Trouble.UNREACHABLE, reason)
            piece.broken.add(bookie)
            self._go_on(piece, now)

    # -- time ---------------------------------------------------------------------------------

    def deadline(self, now: float) -> float | None:
        """When `overdue` has something to do next."""
        times = []
        for bookie, asked in self._asked.items():
            if asked:
                since = self._silent_since(bookie, next(iter(asked.values())).at)
                speculative = since + self._options.speculative_seconds
                times.append(since + self._options.timeout_seconds)
                times += [speculative] if speculative > now else []
        return min(times, default=None)

    def _silent_since(self, bookie: str, asked_at: float) -> float:
        return max(self._heard.get(bookie, 0.0), asked_at)

    def overdue(self, now: float) -> list[str]:
        """Ask replicas of what is waited for; the bookies whose connections are given up."""
        options = self._options
        for piece in self._pieces:
            silent = [now - self._silent_since(*each) for each in piece.waiting.items()]
            if silent and min(silent) >= options.speculative_seconds:
                for bookie in piece.waiting:
                    self._health.avoid(bookie, now)
                self._ask(piece, now)
        return [
            bookie
            for bookie, asked in self._asked.items()
            if asked
            and now - self._silent_since(bookie, next(iter(asked.values())).at)
            >= options.timeout_seconds
        ]
