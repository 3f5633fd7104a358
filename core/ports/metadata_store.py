"""MetadataStore: a small tree of versioned values, in ZooKeeper's manner.

Paths begin with `/`, have no trailing one, and follow Pulsar's and BookKeeper's own layout
(`/ledgers`, `/managed-ledgers`, `/admin`, ...). Every write is durable when the call returns, and
every write states the version it expects: no writer overwrites a value that it has not seen.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

ABSENT = -1
"""As `expected`: the path must not exist yet."""


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
        raises `BadVersion`. Parents need not exist.
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

        `lost` is called on the loop, at most once, when the store cannot promise any more that the
        session lives, and before anybody else can take the path. A store over a network must count
        from the last answer of its server by its own clock: ZooKeeper expires a session that it has
        not heard of for the session's timeout, but tells the client only when that reaches a server
        again (ZooKeeper FAQ, "state transitions"), perhaps long after somebody else has the path. A
        session that is lost does not come back: who goes on takes a new lease. Deleting the path
        gives the lease up, and `lost` is not called.
        """
        ...

    async def next(self, path: str) -> int:
        """The next number of a durable counter: never the same twice, from 0 on."""
        ...

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Callable[[], None]:
        """Call `changed(path)` on the loop after each change at or below `prefix`.

        Returns what ends the watch. Changes may be reported late or together, but never not at all.
        """
        ...
