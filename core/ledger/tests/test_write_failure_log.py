"""A log that cannot be written says so once, and once that it can be again."""

import pytest
from trio.testing import MockClock

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.cursor.cursor import RETRY_SECONDS, Cursor
from magnetar.core.ledger.log.chain import START
from magnetar.core.testing.bench import Bench, Outcome, settled


async def test_trouble_is_logged_when_it_begins_and_when_it_is_over(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients try again ten times a second; nobody wants to read that."""
    ledger = await desk.ledger()

    async def append_some() -> None:
        for _ in range(3):
            ledger.append([b"x"], None, Outcome())
            await settled()

    await append_some()
    desk.ledgers.full = True
    await append_some()
    desk.ledgers.create_failure = StorageFailed("gone")
    await append_some()
    desk.ledgers.create_failure = None
    desk.ledgers.full = False
    await append_some()
    assert caplog.messages == [
        "persistent://public/default/t: a write failed: the disk is full",
        "persistent://public/default/t: cannot open a ledger: gone",
        "persistent://public/default/t: is written again",
    ]


async def test_a_cursor_that_cannot_be_saved_says_so_once(
    mock_clock: MockClock,
    desk: Bench,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is tried every second, and a disk may be full for a night."""

    async def refuse(*_asked: object) -> int:
        raise StorageFailed("the disk is full")

    cursor = Cursor(desk.storage, await desk.ledger(), "s", START, durable=True)
    await cursor.create()

    async def try_again() -> None:
        mock_clock.jump(RETRY_SECONDS)
        await settled()

    desk.ledgers.create_failure = StorageFailed("the disk is full")
    with monkeypatch.context() as full:
        full.setattr(desk.metadata, "put", refuse)
        cursor.ack_range(0, 0, 0)
        await desk.flush_cursors()
        for _ in range(3):
            await try_again()
    desk.ledgers.create_failure = None
    await try_again()
    cursor.ack_range(0, 1, 1)
    await desk.flush_cursors()
    assert caplog.messages == [
        "persistent://public/default/t: cursor s: is not saved: the disk is full",
        "persistent://public/default/t: cursor s: is written again",
    ]


async def test_a_log_that_is_no_topics_is_called_what_it_is(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await desk.ledger("public/other")
    desk.ledgers.full = True
    ledger.append([b"x"], None, Outcome())
    await settled()
    assert "public/other: a write failed: the disk is full" in caplog.messages
