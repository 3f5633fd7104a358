"""All groups that this server coordinates, and the clock that moves them on."""

from __future__ import annotations

import trio

from core.clock import Clock
from wire.kafka.groups.group import Group, State

TICK_SECONDS = 0.1
SIZE_MAX = 10_000


class Groups:
    """See the module's docstring."""

    def __init__(self, clock: Clock, first_delay_seconds: float) -> None:
        self._clock = clock
        self._first_delay_seconds = first_delay_seconds
        self._groups: dict[str, Group] = {}

    def now(self) -> float:
        return self._clock.monotonic()

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def made(self, group_id: str) -> Group:
        """The group of that name, there or not yet."""
        found = self._groups.get(group_id)
        if found is None:
            found = self._groups[group_id] = Group(group_id, SIZE_MAX, self._first_delay_seconds)
        return found

    def forget(self, group_id: str) -> None:
        """It is deleted: whoever holds it looks for another."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            group.die()

    def all(self) -> list[Group]:
        return list(self._groups.values())

    async def run(self) -> None:
        """Until cancelled: see to it that what is due is done."""
        while True:
            await trio.sleep(TICK_SECONDS)
            now = self.now()
            for group in self.all():
                if group.state is not State.EMPTY:
                    group.tick(now)
