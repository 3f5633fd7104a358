"""What a run of PUBLISH packets has before anything has happened to it."""

from __future__ import annotations

from magnetar.wire.mqtt.session.pending_run import PendingRun


def test_it_waits_for_its_entry() -> None:
    run = PendingRun(None, size=120, messages=3)
    assert (run.size, run.messages, run.waits) == (120, 3, 1)
    assert run.position is run.error is None


def test_no_run_has_the_identifiers_of_another() -> None:
    one, other = PendingRun(None), PendingRun(None)
    one.twos.append(2)
    assert other.twos == []
    assert not other.ones
