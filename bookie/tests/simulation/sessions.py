"""What must be there again after sessions have ended, within `BACK_SECONDS` of the last fault.

Each bookie that serves takes writers and is registered for them, and of the processes of
AutoRecovery one is the auditor.
"""

BACK_SECONDS = 10.0


class Sessions:
    """See the module's docstring."""

    def __init__(self, world):
        self._world = world

    async def wait(self):
        """Wait until all of it is there; it is a violation if that takes too long."""
        await self._world.verdict.require_soon(self._missing, BACK_SECONDS)

    async def _missing(self):
        world = self._world
        registered = await world.metadata.truth.children(world.cluster.path("available"))
        for bookie in world.bookies:
            if bookie.serving and not bookie.incarnation.ledgers.writable:
                return f"{bookie.name} takes no writers"
            if bookie.serving and bookie.bookie_id not in registered:
                return f"{bookie.name} serves, and is not registered"
        elected = world.elected
        if world.climate.repairers and len(elected) != 1:
            return f"of {list(world.repairers)} {elected} are auditors"
        return None
