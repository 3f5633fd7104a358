"""Entries as bytes: sealed once, the same in journal, write cache and entry log. Pure.

The header and the digest are those of Apache's `DigestManager` (4.18): 32 bytes of metadata
(`METADATA_LENGTH`), then the digest; the length in front is that of journal and entry log.

    offset  size
         0     4  length of what follows
         4     8  ledger id
        12     8  entry id
        20     8  last add confirmed (LAC), as the writer knew it when it sealed the entry
        28     8  payload bytes of the ledger so far, including this entry
        36     4  CRC32C of the 32 bytes before and the payload after
        40     n  payload

Invariant: a `Run` holds whole records of one ledger with consecutive ids, and nothing else.
There is no object per entry: a run is one blob and the offsets of its records. Joining records
copies their payloads, so a large entry is a run of its own in two pieces: its payload is the same
bytes object that the broker caches for consumers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Final

from magnetar.bookie.format import records
from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.structs import FrozenStruct, mypyc_attr
from magnetar.core.native import quickest

LENGTH_BYTES: Final = 4
HEADER_BYTES: Final = 32
DIGEST_BYTES: Final = 4
OVERHEAD_BYTES: Final = HEADER_BYTES + DIGEST_BYTES
"""Bytes of an entry before its payload."""
ENTRY_BYTES_MIN: Final = HEADER_BYTES
"""An entry without a digest and without a payload: some clients' ledgers have no digests, and
others longer ones (`digests.py`). A `Run` may have their entries, whose payloads nobody knows here.
"""
RECORD_BYTES_MIN: Final = LENGTH_BYTES + ENTRY_BYTES_MIN
DIGEST_AT: Final = LENGTH_BYTES + HEADER_BYTES
RECORD_OVERHEAD_BYTES: Final = LENGTH_BYTES + OVERHEAD_BYTES
ENTRY_BYTES_MAX: Final = 16 * 1024 * 1024 + 64 * 1024
"""A message of 16 MiB fits, with the headers of Pulsar and of the broker.

Two things bound it. Half a write cache (16 MiB by default) must take one such entry and still
accept the next. And a scan of the journal searches for a later group within the largest size of one
(`journal_scan.py`), which must be far below the 64 MiB of a file. Apache's bookies accept frames of
5 MiB by default (`nettyMaxFrameSizeBytes`), and entries of 500 bytes less (`maxSaneEntrySize`,
`DefaultEntryLogger.java` of 4.18).
"""
APART_BYTES: Final = 64 * 1024
"""A payload of this size or more gets a run of its own."""
LEFT_ON_PART: Final = 4
"""Bytes behind the last whole record stay in the blob if they are at most this fraction of it."""

VIEW_BYTES_MIN: Final = 64 * 1024
"""Records of so many bytes are not copied to be sent."""

_start: Final = Struct(">iqq").unpack_from
_identity: Final = Struct(">qqqq").unpack_from
_digest: Final = Struct(">I").unpack_from
_lac: Final = Struct(">q").unpack_from

_pack: Final = quickest(records.pack, "magnetar.bookie.format.compiled")
_unpack: Final = quickest(records.unpack, "magnetar.bookie.format.compiled")


@mypyc_attr(acyclic=True)
class Run:
    """Records of one ledger with consecutive ids. It does not change."""

    __slots__ = ("apart", "blob", "first", "ledger_id", "offsets")

    def __init__(
        self, ledger_id: int, first: int, blob: bytes, offsets: array[int], apart: bytes = b""
    ) -> None:
        self.ledger_id: Final = ledger_id
        self.first: Final = first
        self.blob: Final = blob
        self.offsets: Final = offsets
        """The start of each record, and the end of the last. A blob read from a disk may have more
        bytes behind that end; they mean nothing.
        """
        self.apart: Final = apart
        """The payload of the only record if it was not copied: it belongs behind the blob."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._values() == other._values()

    def _values(self) -> tuple[object, ...]:
        return self.ledger_id, self.first, self.blob, self.offsets, self.apart

    __hash__ = None  # type: ignore[assignment]

    @property
    def last(self) -> int:
        return self.first + len(self.offsets) - 2

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return len(self.blob) + len(self.apart)

    @property
    def memory_bytes(self) -> int:
        return self.size + 4 * len(self.offsets) + 200

    def payload_bytes(self, entry_id: int) -> int:
        """The size of one entry's payload."""
        place = entry_id - self.first
        return self.offsets[place + 1] - self.offsets[place] - RECORD_OVERHEAD_BYTES

    def checked_payloads(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Payloads of a run that was read from a disk: every digest is checked.

        `Corrupted` if the first has a wrong digest. A wrong digest further on only ends the answer:
        the entry was read as a neighbour, a crash may have left it there torn, and the index may
        point to an intact copy elsewhere.
        """
        start, stop = span(self, first, last, bytes_max)
        found = _unpack(self.blob, self.offsets, start, stop)
        if not found:
            raise Corrupted(f"entry {self.ledger_id}:{first} does not have its digest")
        return found


class DigestHeader(FrozenStruct, frozen=True):
    """The 32 bytes before an entry's digest."""

    ledger_id: int
    entry_id: int
    last_confirmed: int
    length: int


def seal(
    ledger_id: int,
    first: int,
    last_confirmed: int,
    length: int,
    payloads: Sequence[bytes],
    heads: Sequence[bytes] | None = None,
) -> Run:
    """Make records of payloads; `length` is the ledger's payload bytes before them.

    With `heads`, each payload is preceded by its head: joined here, where everything is copied
    anyway.
    """
    blob, offsets = _pack(ledger_id, first, last_confirmed, length, payloads, heads)
    return Run(ledger_id, first, blob, offsets)


def seal_apart(
    ledger_id: int, entry_id: int, last_confirmed: int, length: int, payload: bytes, head: bytes
) -> Run:
    """Make one record of a payload that is not copied."""
    blob = records.begin(ledger_id, entry_id, last_confirmed, length, payload, head)
    return Run(ledger_id, entry_id, blob, array("I", (0, len(blob) + len(payload))), payload)


def header_of(run: Run, entry_id: int) -> DigestHeader:
    """The header of one entry."""
    return DigestHeader(*_identity(run.blob, run.offsets[entry_id - run.first] + LENGTH_BYTES))


def entry_of(run: Run, entry_id: int) -> bytes:
    """One entry as its client sent it: everything behind the length."""
    place = entry_id - run.first
    begin = run.offsets[place] + LENGTH_BYTES
    if run.apart:
        return run.blob[begin:] + run.apart
    return run.blob[begin : run.offsets[place + 1]]


def entry_bytes(run: Run, entry_id: int) -> int:
    """The size of what `entry_of` returns."""
    place = entry_id - run.first
    return run.offsets[place + 1] - run.offsets[place] - LENGTH_BYTES


def run_of(entry: bytes) -> Run:
    """One entry as its client sent it, with whatever digest, as a run."""
    record = len(entry).to_bytes(LENGTH_BYTES, "big") + entry
    _, ledger_id, entry_id = _start(record)
    return Run(ledger_id, entry_id, record, array("I", (0, len(record))))


def records_of(
    run: Run, first: int, count_max: int, bytes_max: int
) -> tuple[bytes | memoryview, int]:
    """Whole records from entry `first` on, which are there, in one piece, and their number: as many
    as fit, perhaps none. What is large, and most of what the run has in memory, is a view of it.
    """
    offsets, start = run.offsets, first - run.first
    stop = min(start + count_max, run.count)
    if offsets[stop] - offsets[start] > bytes_max:
        stop = bisect_right(offsets, offsets[start] + bytes_max, start, stop) - 1
    if run.apart and stop > start:
        return run.blob + run.apart, 1
    begin, end = offsets[start], offsets[stop]
    if end - begin >= VIEW_BYTES_MIN and 2 * (end - begin) >= len(run.blob):
        return memoryview(run.blob)[begin:end], stop - start
    return run.blob[begin:end], stop - start


def last_confirmed_in(run: Run) -> int:
    """The LAC that the run's last entry tells."""
    found: int = _lac(run.blob, run.offsets[-2] + LENGTH_BYTES + 16)[0]
    return found


def last_confirmed_of(entry: bytes) -> int:
    """The LAC that an entry tells."""
    found: int = _lac(entry, 16)[0]
    return found


def has_crc32c(run: Run) -> bool:
    """Whether the first entry of a run has a CRC32C, and the right one."""
    if run.apart:
        return is_whole(run.blob, run.apart)
    return is_intact(run.blob, 0, run.offsets[1])


def run_at(data: bytes, start: int, end: int) -> Run | None:
    """The longest run of whole records that begins at `start` and ends by `end`, or None.

    Only lengths and ids are checked; `is_intact` and `checked_payloads` check digests.
    """
    found = _records_at(data, start, end)
    if found is None:
        return None
    ledger_id, first, offsets = found
    return Run(ledger_id, first, data[start : start + offsets[-1]], offsets)


def run_in(data: bytes) -> Run | None:
    """`run_at` from 0 to the end. A short rest stays in the blob: cutting it off is a copy."""
    found = _records_at(data, 0, len(data))
    if found is None:
        return None
    ledger_id, first, offsets = found
    much = len(data) - offsets[-1] > len(data) // LEFT_ON_PART
    return Run(ledger_id, first, data[: offsets[-1]] if much else data, offsets)


def _records_at(data: bytes, start: int, end: int) -> tuple[int, int, array[int]] | None:
    """The ledger, the first entry id, and the offsets of whole records; None without any."""
    if end - start < RECORD_BYTES_MIN:
        return None
    size, ledger_id, first = _start(data, start)
    offsets: list[int] = []
    position = start
    entry_id = first
    same = ledger_id
    while same == ledger_id and size >= ENTRY_BYTES_MIN and first >= 0:
        following = position + LENGTH_BYTES + size
        if following > end:
            break
        offsets.append(position - start)
        position = following
        entry_id += 1
        if end - position < RECORD_BYTES_MIN:
            break
        size, same, found = _start(data, position)
        if found != entry_id:
            break
    if not offsets:
        return None
    offsets.append(position - start)
    return ledger_id, first, array("I", offsets)


def payload_length(head: bytes, ledger_id: int, entry_id: int) -> int:
    """The length of the payload if this is the head of that entry; else -1."""
    if len(head) < RECORD_OVERHEAD_BYTES:
        return -1
    length, *found = _start(head)
    whole = OVERHEAD_BYTES <= length <= ENTRY_BYTES_MAX and found == [ledger_id, entry_id]
    return length - OVERHEAD_BYTES if whole else -1


def is_whole(head: bytes, payload: bytes) -> bool:
    """Whether the digest in the head is that of the payload."""
    digest: int = _digest(head, DIGEST_AT)[0]
    computed: int = crc32c(payload, crc32c(head[LENGTH_BYTES:DIGEST_AT]))
    return computed == digest


def is_intact(blob: bytes, start: int, end: int) -> bool:
    """Whether the record at `start`..`end` has the right digest."""
    body = start + RECORD_OVERHEAD_BYTES
    return body <= end and is_whole(blob[start:body], blob[body:end])


def count_intact(run: Run) -> int:
    """How many records from the start of the run have the right digest."""
    return len(_unpack(run.blob, run.offsets, 0, run.count))


def cut(run: Run, count: int) -> Run:
    """The first `count` records of a run."""
    offsets = run.offsets[: count + 1]
    return Run(run.ledger_id, run.first, run.blob[: offsets[-1]], offsets)


def rest(run: Run, count: int) -> Run:
    """A run without its first `count` records."""
    base = run.offsets[count]
    offsets = array("I", [offset - base for offset in run.offsets[count:]])
    return Run(run.ledger_id, run.first + count, run.blob[base:], offsets)


def span(run: Run, first: int, last: int, bytes_max: int) -> tuple[int, int]:
    """Indexes of the records to return: from `first` on, as far as `last` and `bytes_max` allow.

    At least one entry, even if it is too large.
    """
    offsets = run.offsets
    start = first - run.first
    stop = min(last - run.first + 1, len(offsets) - 1)
    base = offsets[start]
    if offsets[stop] - base - RECORD_OVERHEAD_BYTES * (stop - start) > bytes_max:
        stop = bisect_right(
            range(stop),
            bytes_max,
            lo=start + 1,
            key=lambda i: offsets[i + 1] - base - RECORD_OVERHEAD_BYTES * (i + 1 - start),
        )
    return start, stop


def payloads(run: Run, first: int, last: int, bytes_max: int) -> list[bytes]:
    """Payloads of a run that never left memory: no digest is checked."""
    blob, offsets = run.blob, run.offsets
    if run.apart:
        return [blob[RECORD_OVERHEAD_BYTES:] + run.apart]
    start, stop = span(run, first, last, bytes_max)
    return [
        blob[a + 40 : b]
        for a, b in zip(offsets[start:stop], offsets[start + 1 : stop + 1], strict=True)
    ]
