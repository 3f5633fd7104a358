"""A ledger as its readers see it: what its metadata say. Pure.

Invariant: the segments cover all entries from 0 on without a gap, each by a whole ensemble.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.digests import digest_type
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted

UNKNOWN_ENTRY_BYTES: Final = 1024
"""What an entry is taken for while nothing is known of the ledger's entries."""


class ReadableLedger:
    """See the module's docstring."""

    def __init__(
        self, ledger_id: int, metadata: LedgerMetadata | bytes, password: bytes | None = None
    ) -> None:
        """`password` is for digests with a key; by default the one in the metadata."""
        if isinstance(metadata, bytes):
            metadata, _ = ledger_metadata.decode_of(ledger_id, metadata)
        self.ledger_id = ledger_id
        self.metadata = metadata
        ack = ledger_metadata.ack_quorum(metadata)
        self.striping = Striping(metadata.ensembleSize, metadata.quorumSize, ack)
        self.digest = digest_type(
            metadata.digestType, metadata.password if password is None else password
        )
        self._firsts = [segment.firstEntryId for segment in metadata.segment]
        self._ensembles = [tuple(segment.ensembleMember) for segment in metadata.segment]
        self._check()

    def _check(self) -> None:
        try:
            self.striping.check()
        except ValueError as error:
            raise Corrupted(f"the metadata of ledger {self.ledger_id}: {error}") from None
        if (
            self._firsts[:1] != [0]
            or sorted(set(self._firsts)) != self._firsts
            or any(len(ensemble) != self.striping.ensemble for ensemble in self._ensembles)
        ):
            raise Corrupted(
                f"the ensembles in the metadata of ledger {self.ledger_id} make no sense"
            )

    @property
    def closed(self) -> bool:
        return self.metadata.state == ledger_metadata.CLOSED

    @property
    def last_entry_id(self) -> int:
        """The last entry of a closed ledger; -1 if it is empty."""
        return self.metadata.lastEntryId

    @property
    def last_ensemble(self) -> tuple[str, ...]:
        return self._ensembles[-1]

    @property
    def confirmed_at_least(self) -> int:
        """The last entry before the last segment: that begins with the first entry which was not
        confirmed.
        """
        return self._firsts[-1] - 1

    @property
    def is_everywhere(self) -> bool:
        """Whether each bookie of an ensemble has all its entries, so that it can send many."""
        return self.striping.write == self.striping.ensemble

    @property
    def entry_bytes(self) -> int:
        """The mean size of an entry, perhaps a guess."""
        if self.closed and self.last_entry_id >= 0:
            return self.metadata.length // (self.last_entry_id + 1) + 1
        return UNKNOWN_ENTRY_BYTES

    def segment_end(self, entry_id: int) -> int | None:
        """The last entry of the segment of this one; None for the last segment."""
        place = bisect_right(self._firsts, entry_id)
        return self._firsts[place] - 1 if place < len(self._firsts) else None

    def ensemble(self, entry_id: int) -> tuple[str, ...]:
        """The bookies of the segment of this entry."""
        return self._ensembles[bisect_right(self._firsts, entry_id) - 1]

    def bookies(self, entry_id: int) -> tuple[str, ...]:
        """The bookies that store an entry, in the order in which to ask them."""
        ensemble = self.ensemble(entry_id)
        return tuple(ensemble[position] for position in self.striping.write_set(entry_id))
