"""MetadataStore: a small tree of versioned values, in ZooKeeper's manner.

Paths begin with `/`, have no trailing one, and follow Pulsar's and BookKeeper's own layout
(`/ledgers`, `/managed-ledgers`, `/admin`, ...). Every write is durable when the call returns, and
every write states the version it expects: no writer overwrites a value that it has not seen.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError

ABSENT = -1
"""As `expected`: the path must not exist yet."""

PutDone = Callable[[int, BrokerError | None], None]
"""Gets the new version, and the error if there is none."""


class Versioned(Struct, frozen=True):
    """A value and the count of its changes, starting at 0."""

    value: bytes
    version: int


class MetadataStore(Protocol):
    """Conditional writes, listings, watches and counters."""

    async def get(self, path: str) -> Versioned | None: ...

    async def put(self, path: str, value: bytes, expected: int) -> int:
        """Write and return the new version.

        `ABSENT` creates or raises `AlreadyExists`; a version writes only over that version, or
        raises `BadVersion`. Parents need not exist. The first version is 0; in ZooKeeper it is
        higher if the path led to others before.
        """
        ...

    @property
    def puts_at_once(self) -> bool:
        """Whether the store is able to `put_at_once`; it never changes."""
        ...

    def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
        """`put` as a plain call: `done` is called later, on the loop, with what it would return or
        raise. False, and nothing is written, if the store is closed or not able to.
        """
        ...

    async def delete(self, path: str, expected: int) -> None:
        """Remove one value (children stay). `NotFound` if there is none, else `BadVersion`."""
        ...

    async def children(self, path: str) -> list[str]:
        """Names one level below `path`, sorted, whether they hold a value or only lead to one."""
        ...

    async def lease(self, path: str, value: bytes, lost: Callable[[], None]) -> None:
        """Create a value that vanishes with this process's session; `AlreadyExists` if held.

        `lost` is called on the loop, at most once, when the store can no longer guarantee that the
        session lives, and before another session can take the path. A store over a network must
        count from the last answer of its server by its own clock: ZooKeeper expires a session
        without messages for its timeout, but informs the client only when it reaches a server again
        (ZooKeeper FAQ, "state transitions"), perhaps long after another session has the path. A
        lost session does not come back: its client takes a new lease. Deleting the path gives the
        lease up, and `lost` is not called.
        """
        ...

    async def next(self, path: str) -> int:
        """The next number of a durable counter: never the same twice, from 0 on."""
        ...

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Callable[[], None]:
        """Call `changed(path)` on the loop after each change at or below `prefix`.

        Returns a function that ends the watch. Reports may be late or joined, but none is left out:
        what a call reads that is made after this one is older than the first report. A report of
        `prefix` itself may stand for changes anywhere below.
        """
        ...

    async def sync(self) -> None:
        """Wait until reads see all that anybody has written before this call.

        A server of ZooKeeper's may be behind the others: without this, a listing may lack what
        another process has created.
        """
        ...
