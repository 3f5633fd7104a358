"""Slices of a thread, as the kernel tells them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from magnetar.core.kernel import long_slices


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has such slices")
def test_the_kernel_takes_it_and_nothing_else_changes() -> None:
    found: list[tuple[bool, str]] = []

    def run() -> None:
        taken = long_slices.ask()
        stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat").read_text()
        found.append((taken, stat.rpartition(")")[2].split()[16]))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(True, "0")], "its nice value stays"


def test_a_thread_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(long_slices, "ask", lambda: asked.append(threading.get_ident()))
    threads = [
        threading.Thread(target=lambda: (long_slices.give_way(), long_slices.give_way()))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 2


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_slices.platform, "machine", lambda: "other")
    assert not long_slices.ask()


def test_the_core_is_offered_where_the_system_can(monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[bool] = []
    monkeypatch.setattr(long_slices.os, "sched_yield", lambda: offered.append(True), raising=False)
    long_slices.offer_core()
    assert offered == [True]
    monkeypatch.delattr(long_slices.os, "sched_yield")
    long_slices.offer_core()
    assert offered == [True]
