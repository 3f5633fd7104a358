"""LedgerStore: append-only ledgers of opaque entries, in BookKeeper's words.

Invariant: `done(None)` is called only when the entries are where a crash cannot take them, and in
the order of the appends. Entry ids of a ledger are 0, 1, 2, ... without gaps.

What is not here: topics, indexes, cursors. A ledger does not know what its bytes mean.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError

Done = Callable[[BrokerError | None], None]
"""Called exactly once, synchronously, on the loop; it never raises."""


class LedgerInfo(Struct, frozen=True):
    """What the metadata store knows of one ledger."""

    ledger_id: int
    closed: bool
    last_entry_id: int
    """-1 for an empty ledger; of an open one only a lower bound."""
    length: int
    """Bytes of payload, all entries together."""
    properties: Mapping[str, bytes]


class Quorums(NamedTuple):
    """The sizes of a ledger. Where there is one bookie, all are 1 whatever is asked for."""

    ensemble: int
    """How many bookies it is spread over."""
    write: int
    """How many of them store each entry."""
    ack: int
    """How many of those must have stored an entry before it is confirmed."""


class LedgerReader(Protocol):
    """Reads what has been confirmed."""

    @property
    def ledger_id(self) -> int: ...

    @property
    def last_confirmed(self) -> int:
        """The highest entry id that may be read; -1 while there is none."""
        ...

    async def read(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        """Payloads of entries `first`..`last`, fewer when `bytes_max` is reached, never none.

        `EntryNotFound` beyond `last_confirmed`; `Corrupted` when `first` is not what was written;
        `StorageFailed` for any other trouble. A later entry with trouble ends the answer.
        Cancel-safe.
        """
        ...

    async def damage(self, entry_id: int) -> tuple[int, int]:
        """The first and the last of the damaged entries round this one, which is `Corrupted`."""
        ...

    def read_at_once(self, first: int, last: int, bytes_max: int) -> list[bytes]:
        """What `read` would return, or less, if it is in memory already; else nothing.

        Plain call. Where entries are large, those behind what was read last mostly are.
        """
        ...


class LedgerWriter(LedgerReader, Protocol):
    """The one writer of an open ledger. It may read its own confirmed entries too."""

    @property
    def length(self) -> int:
        """Bytes of payload appended so far, confirmed or not."""
        ...

    def append(
        self, payloads: Sequence[bytes], done: Done, headers: Sequence[bytes] | None = None
    ) -> int:
        """Add a run of entries, at least one; returns the id of the first at once.

        With `headers` each entry is its header followed by its payload: storage joins them when
        it copies them anyway.

        Plain call, nothing awaited: storage gathers what is appended during one turn of the loop
        and during the last sync into one group; `done` is never called before this returns. After
        an error (`Fenced`, `StorageFailed`, `StorageFull`) every later append of this writer fails
        as well; after another (`Overloaded`, `Invalid`) all that come before it is reported.
        """
        ...

    async def close(self) -> LedgerInfo:
        """Seal the ledger at its last confirmed entry. Appends still in flight fail."""
        ...


class LedgerStore(Protocol):
    """Creates, opens and deletes ledgers."""

    def writable(self, quorums: Quorums | None = None) -> bool:
        """False while nothing may be appended: the disk is too full, or has failed. With `quorums`
        also while there are too few bookies for a new ledger of these sizes. Cheap to ask.

        True is no promise that the next append will do. What is stored can be read either way.
        """
        ...

    def refusal(self, quorums: Quorums | None = None) -> str:
        """Why, while it is False: a sentence for operators and clients."""
        ...

    async def create(
        self, properties: Mapping[str, bytes], quorums: Quorums | None = None
    ) -> LedgerWriter:
        """A new, empty ledger with a new id, recorded in the metadata store when this returns.

        Without `quorums` it has the sizes that the store was made with. `StorageFailed` if there
        are too few bookies for it.
        """
        ...

    async def open(self, ledger_id: int, *, recover: bool) -> LedgerReader:
        """Open for reading; `LedgerNotFound` if there is none.

        With `recover` an open ledger is fenced and sealed first, so that no other writer can add
        to it: the reader sees its final end. Without, it sees the confirmed entries.
        """
        ...

    async def info(self, ledger_id: int) -> LedgerInfo: ...

    async def delete(self, ledger_id: int) -> None:
        """Forget the ledger; its disk space comes back later. No error if there is none."""
        ...
