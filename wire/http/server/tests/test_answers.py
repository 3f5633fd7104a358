"""Answers that leave slowly, against a pool of a hundred thousand bytes."""

from typing import Any

import trio
import trio.testing

from magnetar.wire.http.limits.memory import FREE_BYTES, Memory
from magnetar.wire.http.server.answers import Bounded

LARGE = 90_000


class Client:
    """Hears what an application of one answer sends, and takes the body when it likes."""

    def __init__(self, size: int, memory: Memory) -> None:
        self.status = 0
        self.received = b""
        self.reads = trio.Event()
        self._size = size
        self._app = Bounded(self._answer, memory)

    async def _answer(self, _scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"x"), (b"content-length", b"%d" % self._size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(self._size)})

    async def asks(self) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                await self.reads.wait()
                self.received += message["body"]

        async def receive() -> Any:
            raise AssertionError("nobody asks")

        await self._app({"type": "http"}, receive, send)


async def test_one_too_many_is_told_to_come_again() -> None:
    memory = Memory(100_000)
    first, second, small = Client(LARGE, memory), Client(LARGE, memory), Client(FREE_BYTES, memory)
    second.reads.set()
    async with trio.open_nursery() as nursery:
        for client in (first, second, small):
            nursery.start_soon(client.asks)
            await trio.testing.wait_all_tasks_blocked()
        assert (first.status, second.status, small.status) == (200, 503, 200)
        assert b"try again" in second.received
        assert memory.answers.used == LARGE
        first.reads.set()
        small.reads.set()
    assert (len(first.received), len(small.received)) == (LARGE, FREE_BYTES)
    assert memory.answers.used == 0
    await second.asks()
    assert second.status == 200


async def test_who_goes_gives_its_room_back() -> None:
    memory = Memory(100_000)
    client = Client(LARGE, memory)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.asks)
        await trio.testing.wait_all_tasks_blocked()
        assert memory.answers.used == LARGE
        nursery.cancel_scope.cancel()
    assert memory.answers.used == 0
