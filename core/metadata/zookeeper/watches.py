"""Who is told of which changes. Pure.

ZooKeeper reports changes to a connection as long as it lasts. After a broken one nobody knows what
has changed meanwhile, so that each watcher is told of its whole prefix then (`missed`): the port
lets reports be joined, and leaves none out.

The root of all paths is no value: nobody is told when the first write creates its node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Changed = Callable[[str], None]


class Watches:
    """See the module's docstring."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._watches: list[tuple[str, Changed]] = []

    def prefixes(self) -> Iterable[str]:
        return dict.fromkeys(prefix for prefix, _ in self._watches)

    def add(self, prefix: str, changed: Changed) -> Callable[[], bool]:
        """Returns what ends this watch, and says whether it was the last one of its prefix."""
        watch = (prefix, changed)
        self._watches.append(watch)

        def end() -> bool:
            if watch in self._watches:
                self._watches.remove(watch)
            return prefix not in self.prefixes()

        return end

    def heard(self, path: str) -> None:
        """Something has happened to this path."""
        if path == self._root:
            return
        for watch in list(self._watches):
            prefix, changed = watch
            if watch in self._watches and is_below(path, prefix):
                changed(path)

    def missed(self, prefix: str) -> None:
        """Anything may have happened at this prefix and below."""
        for watch in list(self._watches):
            if watch in self._watches and watch[0] == prefix:
                watch[1](prefix)


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is at or below a prefix."""
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")
