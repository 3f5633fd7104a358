"""A log as the modules that read it see it: which is all they import of `core/ledger/log`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from magnetar.core.ledger.log.chain import Chain, Position, Segment
from magnetar.core.ledger.read.tail_cache import Slice

if TYPE_CHECKING:
    from magnetar.core.ledger.read.losses import Losses


class ReadableLog(Protocol):
    """See `ManagedLedger`, which implements it."""

    @property
    def name(self) -> str: ...

    @property
    def chain(self) -> Chain: ...

    @property
    def losses(self) -> Losses: ...

    @property
    def first_index(self) -> int: ...

    @property
    def confirmed_index(self) -> int: ...

    def cached(self, position: Position) -> tuple[Slice, int] | None: ...

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> Slice: ...

    def note(self, segment: Segment, key: str, value: str) -> None:
        """Give a ledger a property computed from its entries; it is stored with the next change."""
        ...
