"""Clients that die with one of their requests to the metadata."""

import trio


class Mortal:
    """A store whose process dies with one of its requests, carried out or not."""

    def __init__(self, store, last, *, carried_out):
        self._store = store
        self._left = last
        self._carried_out = carried_out
        self.scope = trio.CancelScope()

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name == "watch":
            return found

        async def request(*arguments):
            self._left -= 1
            if self._left > 0:
                return await found(*arguments)
            if self._carried_out:
                await found(*arguments)
            self.scope.cancel()
            await trio.sleep_forever()

        return request
