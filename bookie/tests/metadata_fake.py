"""A metadata store in a dict, or in a JSON file for tests that kill processes."""

import json
from pathlib import Path

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound
from magnetar.core.ports.metadata_store import ABSENT, Versioned


class DictMetadata:
    """Just enough of a MetadataStore for the ledger client."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.values: dict[str, tuple[bytes, int]] = {}
        self.counters: dict[str, int] = {}
        self._leases: set[str] = set()
        """Paths that end with this process."""
        if path is not None and path.exists():
            found = json.loads(path.read_text())
            self.values = {k: (bytes.fromhex(v), n) for k, (v, n) in found["values"].items()}
            self.counters = found["counters"]

    def without_leases(self) -> dict[str, tuple[bytes, int]]:
        """The values that outlive this process."""
        return {path: found for path, found in self.values.items() if path not in self._leases}

    def _save(self) -> None:
        if self._path is None:
            return
        new = self._path.with_suffix(".new")
        values = {k: (v.hex(), n) for k, (v, n) in self.without_leases().items()}
        new.write_text(json.dumps({"values": values, "counters": self.counters}))
        new.replace(self._path)

    async def get(self, path):
        found = self.values.get(path)
        return None if found is None else Versioned(*found)

    async def put(self, path, value, expected):
        found = self.values.get(path)
        if expected == ABSENT and found is not None:
            raise AlreadyExists(path)
        if expected != ABSENT and (found is None or found[1] != expected):
            raise BadVersion(path)
        version = 0 if found is None else found[1] + 1
        self.values[path] = (value, version)
        self._save()
        return version

    async def delete(self, path, expected):
        if path not in self.values:
            raise NotFound(path)
        if self.values[path][1] != expected:
            raise BadVersion(path)
        del self.values[path]
        self._leases.discard(path)
        self._save()

    async def children(self, path):
        start = path.rstrip("/") + "/"
        return sorted({p[len(start) :].split("/")[0] for p in self.values if p.startswith(start)})

    async def lease(self, path, value, lost):
        if path in self.values:
            raise AlreadyExists(path)
        self._leases.add(path)
        await self.put(path, value, ABSENT)

    async def next(self, path):
        number = self.counters.get(path, 0)
        self.counters[path] = number + 1
        self._save()
        return number

    def watch(self, prefix, changed):
        return lambda: None

    async def sync(self):
        pass
