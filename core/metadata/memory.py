"""A MetadataStore in memory: for tests, and the verified fake of the port.

It passes the same contract tests as the durable stores, and is lost with its process. A test may
end its session (`expire`).
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound
from magnetar.core.ports.metadata_store import ABSENT, PutDone, Versioned


class MemoryMetadata:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._values: dict[str, Versioned] = {}
        self._counters: dict[str, int] = {}
        self._leases: dict[str, Callable[[], None]] = {}
        """The callbacks for the loss of the session, by path."""
        self._watches: list[tuple[str, Callable[[str], None]]] = []

    async def get(self, path: str) -> Versioned | None:
        return self._values.get(path)

    async def put(self, path: str, value: bytes, expected: int) -> int:
        return self._written(path, value, expected)

    def _written(self, path: str, value: bytes, expected: int) -> int:
        found = self._values.get(path)
        version = found.version if found is not None else ABSENT
        if expected != version:
            if expected == ABSENT:
                raise AlreadyExists(f"{path} exists")
            raise BadVersion(f"{path} has version {version}, not {expected}")
        self._values[path] = Versioned(value, version + 1)
        self._tell(path)
        return version + 1

    @property
    def puts_at_once(self) -> bool:
        return True

    def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
        trio.lowlevel.current_trio_token().run_sync_soon(self._put, path, value, expected, done)
        return True

    def _put(self, path: str, value: bytes, expected: int, done: PutDone) -> None:
        try:
            version = self._written(path, value, expected)
        except (AlreadyExists, BadVersion) as error:
            done(0, error)
        else:
            done(version, None)

    async def delete(self, path: str, expected: int) -> None:
        found = self._values.get(path)
        if found is None:
            raise NotFound(f"{path} does not exist")
        if expected != found.version:
            raise BadVersion(f"{path} has version {found.version}, not {expected}")
        del self._values[path]
        self._leases.pop(path, None)
        self._tell(path)

    async def children(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return sorted(
            {key[len(start) :].partition("/")[0] for key in self._values if key.startswith(start)}
        )

    async def lease(self, path: str, value: bytes, lost: Callable[[], None]) -> None:
        await self.put(path, value, ABSENT)
        self._leases[path] = lost

    def expire(self) -> None:
        """End the session, as a server does with a client that is silent for too long."""
        leases, self._leases = self._leases, {}
        for lost in leases.values():
            lost()
        for path in leases:
            del self._values[path]
            self._tell(path)

    async def next(self, path: str) -> int:
        number = self._counters.get(path, 0)
        self._counters[path] = number + 1
        return number

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Callable[[], None]:
        entry = (prefix, changed)
        self._watches.append(entry)
        return lambda: self._watches.remove(entry)

    async def sync(self) -> None:
        """Nothing: all readers see the same values."""

    def _tell(self, path: str) -> None:
        for prefix, changed in list(self._watches):
            if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
                changed(path)
