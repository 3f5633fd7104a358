"""What must be there again after sessions have ended, within `BACK_SECONDS` of the last fault.

Each bookie that serves is registered, and of the processes of AutoRecovery one is the auditor.
"""

import trio

BACK_SECONDS = 10.0
LOOK_SECONDS = 0.25


class Sessions:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world

    async def wait(self):
        """Wait until all of it is there; it is a violation if that takes too long."""
        deadline = trio.current_time() + BACK_SECONDS
        while (missing := await self._missing()) is not None:
            late = trio.current_time() >= deadline
            text = f"{missing}, {BACK_SECONDS:g} s after the last fault"
            self._world.verdict.require(not late, text)
            await trio.sleep(LOOK_SECONDS)

    async def _missing(self):
        world = self._world
        registered = await world.metadata.truth.children(world.cluster.path("available"))
        for bookie in world.bookies:
            if bookie.serving and bookie.bookie_id not in registered:
                return f"{bookie.name} serves, and is not registered"
        elected = [name for name, each in world.repairers.items() if each.is_elected]
        if world.climate.repairers and len(elected) != 1:
            return f"of {list(world.repairers)} {elected} are auditors"
        return None
