"""A held subscription: only its holder may use it, and others are told why."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from magnetar.core.kernel.errors import NotAllowed
from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import Bench
from magnetar.core.topic.subscription.held import HeldClient, HeldGroup, HeldSubscriptions

CLIENT = HeldClient("c", "1.2.3.4:1", "5", 1, 2, 3)


class Holder:
    """A front that holds one name."""

    def __init__(self, name: str, sessions: int | None) -> None:
        self.name = name
        self.number = sessions
        self.advanced = 0

    def refusal(self, name: str) -> str | None:
        return f"{name} is held" if name == self.name else None

    def sessions(self, topic: str) -> int | None:
        return self.number

    def clients(self, topic: str, most: int) -> Sequence[HeldClient]:
        return [CLIENT] * most

    def groups(self, topic: str, most: int) -> Sequence[HeldGroup]:
        return [HeldGroup("g", 1, 2, 3, ())] * most

    async def advance(self) -> None:
        self.advanced += 1


async def test_several_holders() -> None:
    held = HeldSubscriptions()
    assert held.refusal("a") is None
    assert held.sessions("t") is None
    holders = [Holder("a", None), Holder("b", 2), Holder("c", 3)]
    for holder in holders:
        held.add(holder)
    assert [held.refusal(name) for name in "abd"] == ["a is held", "b is held", None]
    assert held.sessions("t") == 5
    assert len(held.clients("t", 4)) == len(held.groups("t", 4)) == 4
    await held.advance()
    assert [holder.advanced for holder in holders] == [1, 1, 1]
    held.check("d")
    with pytest.raises(NotAllowed, match="c is held"):
        held.check("c")


async def test_nobody_else_gets_or_deletes_it(desk: Bench) -> None:
    topic = await desk.topic()
    topic.env.held.add(Holder("h", 0))
    with pytest.raises(NotAllowed):
        await topic.subscription("h")
    assert not topic.subscriptions
    with pytest.raises(NotAllowed):
        topic.reader("h", START)
    found = await topic.hold("h")
    assert await topic.hold("h") is found
    with pytest.raises(NotAllowed):
        await topic.subscription("h", create=False)
    with pytest.raises(NotAllowed):
        await topic.unsubscribe("h", force=True)
    assert topic.subscriptions == {"h": found}
    await topic.release("h")
    assert not topic.subscriptions
