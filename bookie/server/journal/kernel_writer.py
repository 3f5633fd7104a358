"""Writes the journal through the kernel: the loop submits a write, a descriptor shows its end.

`machine/kernel_writes.py` uses io_submit(2).

    state      leaves when            for
    idle       a batch is put         WRITING, or PREPARING
    WRITING    a piece is durable     WRITING (the next piece or group), PREPARING, or idle
    PREPARING  a thread has done it   WRITING, or idle

PREPARING is rare: a thread does what would block, for a new file that is not ready, or a write for
which the file system would wait.

Invariant: the next group is begun before the ended one is delivered, so that the disk works while
replies are made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import trio

from magnetar.bookie.server.journal.groups import GROUP_BYTES, Batch, CommitGroups, failure
from magnetar.core.kernel.errors import StorageFailed, StorageFull
from magnetar.core.ports.disk import SubmittedWrites
from magnetar.core.ports.threads import Threads


class KernelWriter:
    """See the module's docstring."""

    def __init__(
        self,
        groups: CommitGroups,
        writes: SubmittedWrites,
        deliver: Callable[[list[Batch], StorageFailed | None], None],
        threads: Threads,
    ) -> None:
        self._groups = groups
        self._writes = writes
        self._deliver = deliver
        self._threads = threads
        self._queue: deque[Batch] = deque()
        self._group: list[Batch] = []
        """The batches that are being written."""
        self._durable: list[Batch] = []
        """Batches that are durable and not delivered yet."""
        self._pieces: Iterator[memoryview] | None = None
        """Those that follow; None for none."""
        self._piece = memoryview(b"")
        self._written = 0
        """Bytes of the piece that are durable."""
        self._broken: StorageFailed | None = None
        self._resting = trio.lowlevel.ParkingLot()
        """`stop` waits here for the state PREPARING to end."""

    def put(self, batch: Batch) -> None:
        self._queue.append(batch)
        if not self._group:
            self._go_on(self._next_group)

    async def stop(self) -> None:
        while self._group:
            if self._writes.busy:
                await self._threads.run(self._writes.wait)
                self.ended()
            else:
                await self._resting.park()
        await self._threads.run(self._groups.close)
        self._writes.close()

    def ended(self) -> None:
        """Called when the descriptor is readable: a write may have ended."""
        self._go_on(self._take_result)

    def _go_on(self, step: Callable[[], None]) -> None:
        """Run one step of the state machine; deliver ended groups and errors after it."""
        refused: StorageFailed | None = None
        try:
            step()
        except Exception as error:  # noqa: BLE001 - our own mistake must not leave appends
            # waiting for ever: it ends the process as a broken disk does.
            refused = failure(error)
            if not isinstance(refused, StorageFull):
                self._broken = refused
        if self._durable:
            durable, self._durable = self._durable, []
            self._deliver(durable, None)
        refused = self._broken or refused
        if refused is not None:
            lost = [*self._group, *self._queue]
            self._group = []
            self._queue.clear()
            self._deliver(lost, refused)

    def _next_group(self) -> None:
        """Make a group of the waiting batches and begin to write it."""
        if self._broken is not None:
            return
        group, size = self._group, 0
        while self._queue and size < GROUP_BYTES:
            batch = self._queue.popleft()
            group.append(batch)
            size += batch[1]
        if self._groups.begin(size):
            self._first_piece()
        elif self._groups.can_roll(size):
            self._groups.roll(size)
            self._first_piece()
        else:
            self._prepare(lambda: self._groups.roll(size), self._first_piece)

    def _first_piece(self) -> None:
        piece = self._groups.only_piece(self._group)
        if piece is None:
            self._pieces = self._groups.pieces(self._group)
            self._next_piece()
        else:
            self._pieces = None
            self._begin(piece)

    def _next_piece(self) -> None:
        piece = None if self._pieces is None else next(self._pieces, None)
        if piece is None:
            self._end_group()
        else:
            self._begin(piece)

    def _begin(self, piece: memoryview) -> None:
        self._piece = piece
        self._written = 0
        self._write()

    def _write(self) -> None:
        """Submit the rest of the piece, which is at the beginning of the buffer."""
        file, start = self._groups.file, self._written
        try:
            self._writes.begin(file.fd, file.position, start, len(self._piece) - start)
        except BlockingIOError:
            self._write_in_thread()

    def _write_in_thread(self) -> None:
        rest = self._piece[self._written :]
        self._prepare(lambda: self._groups.file.write(rest), self._next_piece)

    def _take_result(self) -> None:
        try:
            written = self._writes.ended()
        except BlockingIOError:
            self._write_in_thread()
            return
        if written is None:
            return
        self._groups.file.position += written
        self._written += written
        if self._written < len(self._piece):
            self._write()
        else:
            self._next_piece()

    def _end_group(self) -> None:
        self._groups.end()
        self._durable, self._group = self._group, []
        if self._queue:
            self._next_group()

    def _prepare(self, job: Callable[[], None], then: Callable[[], None]) -> None:
        """Run a blocking job in a thread, then go on here."""

        def run() -> None:
            failed: Exception | None = None
            try:
                job()
            except Exception as error:  # noqa: BLE001 - handled by `_go_on` like all others
                failed = error
            self._threads.call_soon(self._prepared, failed, then)

        self._threads.start(run, "journal-prepare")

    def _prepared(self, failed: Exception | None, then: Callable[[], None]) -> None:
        def go_on() -> None:
            if failed is not None:
                raise failed
            then()

        self._go_on(go_on)
        self._resting.unpark_all()
