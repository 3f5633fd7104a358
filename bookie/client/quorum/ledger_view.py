"""One ledger as its metadata describe it: its quorums, its digest, and its segments."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain, pairwise

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted

Ensemble = tuple[str, ...]


def striping_of(ledger: LedgerMetadata) -> Striping:
    """The sizes, which are checked."""
    ack = ledger_metadata.ack_quorum(ledger)
    striping = Striping(ledger.ensembleSize, ledger.quorumSize, ack)
    try:
        striping.check()
    except ValueError as error:
        raise Corrupted(f"the metadata of a ledger make no sense: {error}") from None
    return striping


class LedgerView:
    """See the module's docstring. Segments change as they do in the metadata."""

    def __init__(self, ledger_id: int, ledger: LedgerMetadata, password: bytes) -> None:
        self.ledger_id = ledger_id
        self.striping = striping_of(ledger)
        self.master_key = digests.master_key(password)
        self.digest = digests.digest_type(ledger.digestType, password)
        self.has_crc32c = ledger.digestType == LedgerMetadata.CRC32C
        self._firsts: list[int] = []
        self._ensembles: list[Ensemble] = []
        self.follow(ledger)

    def follow(self, ledger: LedgerMetadata) -> bool:
        """Take the segments of newer metadata; whether they are others."""
        firsts = [segment.firstEntryId for segment in ledger.segment]
        ensembles = [tuple(segment.ensembleMember) for segment in ledger.segment]
        if not firsts or firsts[0] != 0 or any(a >= b for a, b in pairwise(firsts)):
            raise Corrupted(f"ledger {self.ledger_id} has segments from {firsts}")
        if any(len(members) != self.striping.ensemble for members in ensembles):
            raise Corrupted(f"ledger {self.ledger_id} has a segment of another size")
        changed = (firsts, ensembles) != (self._firsts, self._ensembles)
        self._firsts, self._ensembles = firsts, ensembles
        return changed

    @property
    def bookies(self) -> list[str]:
        """All that have entries of it, or may have."""
        return list(dict.fromkeys(chain.from_iterable(self._ensembles)))

    @property
    def last_segment(self) -> tuple[int, Ensemble]:
        """Its first entry, and its bookies."""
        return self._firsts[-1], self._ensembles[-1]

    def segment_of(self, entry_id: int) -> tuple[Ensemble, int | None]:
        """The bookies of an entry's segment, and its last entry; None for the last segment."""
        place = bisect_right(self._firsts, entry_id)
        last = self._firsts[place] - 1 if place < len(self._firsts) else None
        return self._ensembles[place - 1], last

    def open_entry(self, entry_id: int, entry: bytes) -> bytes:
        """The payload of an entry; `Corrupted` if it is not that one, or not whole."""
        _, payload = digests.open_entry(self.digest, self.ledger_id, entry_id, entry)
        return payload

    def open_last(self, entry: bytes) -> DigestHeader:
        """The header of the last entry of a bookie, which says itself which one it is."""
        entry_id = int.from_bytes(entry[8:16], "big", signed=True)
        header, _ = digests.open_entry(self.digest, self.ledger_id, entry_id, entry)
        return header


def put_segment(ledger: LedgerMetadata, first: int, ensemble: Sequence[str]) -> None:
    """Have a segment begin at an entry: in the place of the last one, if that begins there."""
    last = ledger.segment[-1]
    if last.firstEntryId > first:
        raise Corrupted(f"a segment from {first} behind one from {last.firstEntryId}")
    if last.firstEntryId == first:
        del last.ensembleMember[:]
        last.ensembleMember.extend(ensemble)
    else:
        ledger.segment.add(ensembleMember=ensemble, firstEntryId=first)
