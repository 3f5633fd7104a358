"""Each reason not to read a connection is one of its own."""

from magnetar.core.link.memory import pauses


def test_no_two_reasons_are_one() -> None:
    reasons = [value for name, value in vars(pauses).items() if name.startswith("PAUSE_")]
    assert len(reasons) > 1
    assert sum(reasons) == (1 << len(reasons)) - 1
