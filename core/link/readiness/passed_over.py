"""Who was ready and not served, since a sweep had taken long: they come first in the next one.

The kernel names descriptors in one order as long as they stay ready. Without this, some peers that
always have more to be read would be served in each sweep, and those behind them in none.

Invariant: of those that stay ready, nobody is served again before all that were passed over.
"""

from __future__ import annotations

from collections.abc import Container

Ready = list[tuple[int, int]]
"""Descriptors, and what each is ready for."""


class PassedOver:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._passed: dict[int, None] = {}
        """The one that has waited longest first."""

    def __bool__(self) -> bool:
        return bool(self._passed)

    def come_first(self, ready: Ready, clients: Container[int]) -> Ready:
        """The same in another order: first what is no client, as the journal and servers of ours,
        then who was passed over.
        """
        found = dict(ready)
        first = [fd for fd in found if fd not in clients]
        first += [fd for fd in self._passed if fd in found and fd in clients]
        return [(fd, found.pop(fd)) for fd in first] + list(found.items())

    def note(self, ready: Ready, served: int, *, are_all: bool) -> None:
        """So many of these were served; `are_all`: nobody else is ready."""
        if are_all:
            self._passed.clear()
        for fd, _ in ready[:served]:
            self._passed.pop(fd, None)
        for fd, _ in ready[served:]:
            self._passed.setdefault(fd)

    def forget(self, fd: int) -> None:
        """It is closed."""
        self._passed.pop(fd, None)
