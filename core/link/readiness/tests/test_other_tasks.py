"""Tasks of trio that are ready to run, and what has come for them."""

import select
import socket
import sys
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from magnetar.core.link.readiness import other_tasks
from magnetar.core.link.readiness.other_tasks import OtherTasks, epoll_of


async def test_tasks_are_ready_until_they_wait() -> None:
    others = OtherTasks()
    event = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(event.wait)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(others)
        assert others.ready == 0
        nursery.start_soon(event.wait)
        assert others.ready == 1
        await trio.testing.wait_all_tasks_blocked()
        assert others.ready == 0
        event.set()
        assert others.ready == 2
    trio.lowlevel.remove_instrument(others)


async def test_who_was_ready_before_is_not_counted() -> None:
    others = OtherTasks()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        trio.lowlevel.add_instrument(others)
        await trio.testing.wait_all_tasks_blocked()
        assert others.ready == 0
        nursery.start_soon(trio.lowlevel.checkpoint)
        assert others.ready == 1
    trio.lowlevel.remove_instrument(others)


async def test_what_has_come_for_others_is_seen() -> None:
    """On a descriptor, and from a thread."""
    others = OtherTasks()
    assert others.have_events(), "nobody knows"
    ours, theirs = socket.socketpair()
    other, far = socket.socketpair()
    with ours, theirs, other, far:
        theirs.send(b"1")
        await trio.lowlevel.wait_readable(ours)
        others.find_events(ours.fileno())
        assert others.have_events() is (sys.platform != "linux"), "ours has come already"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.wait_readable, other)
            await trio.testing.wait_all_tasks_blocked()
            assert others.have_events() is (sys.platform != "linux")
            far.send(b"1")
            assert others.have_events()
        token = trio.lowlevel.current_trio_token()
        await trio.testing.wait_all_tasks_blocked()
        thread = threading.Thread(target=token.run_sync_soon, args=(ours.fileno,))
        thread.start()
        thread.join()
        assert others.have_events()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no epoll")
def test_an_epoll_is_known_by_what_it_watches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours, theirs = socket.socketpair()
    with select.epoll() as one, select.epoll() as two, ours, theirs:
        one.register(ours, select.EPOLLIN)
        two.register(theirs, select.EPOLLIN)
        assert epoll_of(ours.fileno()) == one.fileno()
        assert epoll_of(theirs.fileno()) == two.fileno()
        assert epoll_of(one.fileno()) is None
        monkeypatch.setattr(other_tasks, "OPEN_FILES", tmp_path / "none")
        assert epoll_of(ours.fileno()) is None
