"""The log of a shadow topic (PIP-180): another topic's ledgers, and cursors of its own.

Pulsar's shadow reads the ledgers that its source's list names, and is sent what is new by a
replicator (`ShadowManagedLedgerImpl.java` of 4.2), since another broker may serve it. Here both are
in one process, so the chain, the tail, the open readers and the transactions are the source's
objects themselves, and a message is readable in both at the same moment.

    the shadow's own                        the source's
    record: properties, cursors' parent     segments, confirmed, indexes, transactions
    state, fence                            bytes, readers, losses, tail

Invariants: a shadow writes no entry, and ends, trims and recovers no ledger; its record names none.
It is fenced with its source (`core/topic/shadow_topic.py`); who still reads then sees a log that
does not change any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.ledger.log.change_notice import MARKED, ChangeNotice
from magnetar.core.ledger.log.managed_ledger import ManagedLedger

if TYPE_CHECKING:
    from magnetar.core.ledger.log.appends import Appended
    from magnetar.core.ledger.log.chain import Position, Segment
    from magnetar.core.ledger.log.statistics import LedgerStatistics
    from magnetar.core.ledger.read.tail_cache import Slice
    from magnetar.core.ledger.storage import Storage

ONLY_READ: Final = "a shadow topic can be read only: its messages are those of its source"


class UnkeptNotice(ChangeNotice):
    """Has whoever would keep something of the log make it anew each time: its changes are those of
    the source, which has a keeper of its own.
    """

    def ask(self, marks: bytearray, numbers: bytearray, number: int, mark: int = MARKED) -> None:
        self.leave()
        marks[number] = MARKED


class ShadowLedger(ManagedLedger):
    """See the module's docstring."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        advanced: Callable[[], None],
        lost: Callable[[], None],
        source: ManagedLedger,
    ) -> None:
        super().__init__(storage, name, advanced, lost)
        self.source = source
        self.chain, self.transactions = source.chain, source.transactions
        self.times, self.losses = source.times, source.losses
        self.delayed_index = source.delayed_index
        self.notice = UnkeptNotice()

    # -- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the record's properties. Ledgers that it names are the source's: Pulsar lists them
        there, too.
        """
        await self.ledgers.open_without_ledgers()

    async def terminate(self) -> Position:
        raise NotAllowed("Terminate is not allowed on shadow topic.")

    @property
    def terminated(self) -> bool:
        return self.source.terminated

    # -- what a shadow does not do ------------------------------------------------------------

    def append(self, payloads: list[bytes], counts: list[int] | None, done: Appended) -> int:
        done(NotAllowed(ONLY_READ))
        return 0

    async def roll_if_old(self) -> None:
        """Nothing: it is the source's."""

    async def roll(self) -> None:
        """Nothing: it is the source's."""

    async def trim(self, doomed: list[int]) -> None:
        raise NotAllowed(ONLY_READ)

    async def cut(self, index: int, position: Position) -> None:
        raise NotAllowed(ONLY_READ)

    def note(self, segment: Segment, key: str, value: str) -> None:
        self.source.note(segment, key, value)

    # -- reading ------------------------------------------------------------------------------

    @property
    def confirmed_index(self) -> int:
        return self.source.confirmed_index

    @property
    def at_rest(self) -> bool:
        return self.source.at_rest

    @property
    def mixed(self) -> bool:
        return self.source.mixed

    @property
    def open_bytes(self) -> int:
        return self.source.open_bytes

    def cache_tail(self, readers: bool) -> None:
        if readers:
            self.source.cache_tail(True)

    def cached(self, position: Position) -> tuple[Slice, int] | None:
        return self.source.cached(position)

    def read_at_once(self, position: Position, entries_max: int, bytes_max: int) -> Slice | None:
        return self.source.read_at_once(position, entries_max, bytes_max)

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> Slice:
        return await self.source.read(position, entries_max, bytes_max)

    def statistics(self) -> LedgerStatistics:
        return self.source.statistics()
