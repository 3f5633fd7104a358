"""Event loops as storage sees them, for tests."""

import trio


class NotedLoop:
    """Watches in a nursery, and notes what storage says."""

    def __init__(self, nursery: trio.Nursery | None = None) -> None:
        self.said: list[str] = []
        self.scope = trio.CancelScope()
        self._nursery = nursery
        self._changed = trio.Event()

    def watch(self, fd, call, due):
        assert self._nursery is not None, "nobody watches here"
        self._nursery.start_soon(self._watch, fd, call)

    async def _watch(self, fd, call):
        with self.scope:
            while True:
                await trio.lowlevel.wait_readable(fd)
                call()

    def begin(self):
        self.said.append("begin")

    def settle(self):
        self._say("settle")

    def schedule_settle(self):
        self._say("schedule_settle")

    def _say(self, what):
        self.said.append(what)
        self._changed.set()
        self._changed = trio.Event()

    async def changed(self):
        """Wait until storage has delivered something, or asks for a look."""
        await self._changed.wait()
