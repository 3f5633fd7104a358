"""Ledgers in memory, bookies that answer from them, and what may be wrong with one.

The answers are packed by `version2` and `version3`, as those of `magnetar bookie` are.
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.reading.ledger import ReadableLedger
from magnetar.bookie.rpc import version2, version3
from magnetar.bookie.rpc.messages import (
    BatchRead,
    Lac,
    Read,
    ReadEntries,
    ReadEntry,
    Status,
)

LEDGER = 5


def payload(entry_id):
    return b"payload %d " % entry_id * (entry_id % 3 + 1)


def metadata(
    count,
    segments=None,
    quorums=(3, 2),
    kind=LedgerMetadata.CRC32C,
    closed=True,
):
    """Metadata of a ledger; `segments` maps the first entry of each to its bookies."""
    segments = segments or {0: "abc"}
    made = ledger_metadata.fresh(tuple(segments[0]), quorums, {}, 0, 1)
    made.digestType = kind
    for first, bookies in list(segments.items())[1:]:
        made.segment.add(ensembleMember=tuple(bookies), firstEntryId=first)
    if closed:
        made.state = ledger_metadata.CLOSED
        made.lastEntryId = count - 1
        made.length = sum(len(payload(i)) for i in range(count))
    return made


class FakeBookie:
    """Has all entries of one ledger, but for what is taken from it."""

    def __init__(self, ledger: ReadableLedger, count, lac=None):
        self.ledger = ledger
        self.count = count
        self.lac = lac
        self.missing: set[int] = set()
        self.damaged: set[int] = set()
        self.statuses: dict[int, Status] = {}
        """What is said of an entry instead of it."""
        self.count_max = 1 << 30
        """Of one batch."""
        self.asked: list = []

    def entry(self, entry_id):
        header = DigestHeader(LEDGER, entry_id, entry_id - 1, 0)
        made = digests.seal_entry(self.ledger.digest, header, payload(entry_id))
        return made[:-1] + bytes([made[-1] ^ 1]) if entry_id in self.damaged else made

    def answer(self, body):
        """The body of the response to a request of version 2."""
        head, request = version2.parse_request(body)
        self.asked.append(request)
        if isinstance(request, Read):
            status = self._status(request.entry_id)
            entry = self.entry(request.entry_id) if status is Status.OK else None
            response = ReadEntry(status, request.ledger_id, request.entry_id, entry)
        else:
            response = self._batch(request)
        return version2.pack_response(head, response)

    def _status(self, entry_id):
        if entry_id in self.missing or entry_id >= self.count:
            return Status.NO_ENTRY
        return self.statuses.get(entry_id, Status.OK)

    def _batch(self, request: BatchRead):
        status, found = self._status(request.first), []
        end = request.first + min(request.count_max, self.count_max)
        for entry_id in range(request.first, end):
            if self._status(entry_id) is not Status.OK:
                break
            found.append(self.entry(entry_id))
        return ReadEntries(status, LEDGER, request.first, request.request_id, found)

    def answer3(self, body):
        """The body of the response to a request of version 3 for a LAC."""
        header, _ = version3.parse_request(body)
        if self.count == 0 and self.lac is None:
            return version3.pack_response(header, Lac(Status.NO_ENTRY, LEDGER))
        packet = digests.seal_lac(self.ledger.digest, LEDGER, self.lac) if self.lac else None
        last = self.entry(self.count - 1) if self.count else None
        return version3.pack_response(header, Lac(Status.OK, LEDGER, packet, last))


@contextmanager
def listening(answer, whole=True):
    """A server on a loopback port; its address.

    `answer` returns the body of the response to one, None to say nothing, or raises EOFError to end
    the connection. With `whole` False each response goes out in two pieces.
    """
    with ExitStack() as ends, socket.create_server(("127.0.0.1", 0)) as server:
        threads = ends.enter_context(ThreadPoolExecutor(max_workers=50))
        threads.submit(_accept, server, lambda one: threads.submit(_serve, one, answer, whole))
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)


def _accept(server, serve):
    while True:
        try:
            one, _ = server.accept()
        except OSError:
            return
        try:
            serve(one)
        except RuntimeError:  # it is over: nothing is served any more
            one.close()
            return


def _serve(one, answer, whole):
    with one, one.makefile("rb") as file:
        try:
            while head := file.read(4):
                body = answer(file.read(int.from_bytes(head, "big")))
                if body is None:
                    continue
                frame = len(body).to_bytes(4, "big") + body
                for piece in (frame,) if whole else (frame[:3], frame[3:]):
                    one.sendall(piece)
        except (EOFError, OSError):
            return
