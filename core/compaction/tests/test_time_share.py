"""Who runs while entries are unpacked."""

from __future__ import annotations

import threading

import trio

from magnetar.core.compaction import time_share
from magnetar.core.compaction.time_share import ON_THE_LOOP_BYTES, ON_THE_LOOP_MESSAGES, TimeShare


async def test_a_long_piece_of_work_is_done_in_a_thread() -> None:
    share = TimeShare(10**9)
    here = threading.get_ident()
    assert await share.call(ON_THE_LOOP_BYTES, ON_THE_LOOP_MESSAGES, threading.get_ident) == here
    assert await share.call(ON_THE_LOOP_BYTES + 1, 1, threading.get_ident) != here
    assert await share.call(1, ON_THE_LOOP_MESSAGES + 1, threading.get_ident) != here
    assert await share.call(1, 1, int, "12") == 12


async def test_others_run_after_so_many_messages() -> None:
    share, runs = TimeShare(3), 0

    async def other() -> None:
        nonlocal runs
        while True:
            runs += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.lowlevel.checkpoint()
        before = runs
        await share.call(1, 2, int)
        assert runs == before
        for _ in range(2):  # whoever is ready runs between the two
            await share.call(1, 3, int)
        assert runs > before
        nursery.cancel_scope.cancel()


async def test_the_core_is_offered_behind_a_thread_and_between_turns(monkeypatch) -> None:
    """Else a client that waits for it would wait for several turns."""
    offers: list[int] = []
    monkeypatch.setattr(time_share, "offer_core", lambda: offers.append(threading.get_ident()))
    here, share = threading.get_ident(), TimeShare(3)
    await share.call(ON_THE_LOOP_BYTES + 1, 1, int)
    assert offers == [here]
    await share.turn()
    await share.call(1, 3, int)
    assert offers == [here] * 3
    await share.call(1, 1, int)
    assert offers == [here] * 3
