"""Modules are kept from garbage collection once, not again with each task."""

import gc

import pytest

from magnetar.spark_connector import worker


def test_it_freezes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    monkeypatch.setattr(worker, "_frozen", False)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append(None))
    worker.freeze_once()
    worker.freeze_once()
    assert len(calls) == 1
