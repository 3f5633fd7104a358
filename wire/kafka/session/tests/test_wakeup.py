"""Who waits is woken, or the time is over."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from magnetar.wire.kafka.session.wakeup import Wakeup


async def test_news_that_came_before_the_wait() -> None:
    news = Wakeup()
    news.wake()
    news.wake()
    assert await news.wait(trio.current_time() + 1)


async def test_each_wait_is_for_fresh_ones(autojump_clock: MockClock) -> None:
    news = Wakeup()
    news.wake()
    assert await news.wait(trio.current_time() + 1)
    began = trio.current_time()
    assert not await news.wait(began + 5)
    assert trio.current_time() - began >= 5
