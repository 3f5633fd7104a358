"""JSON of clients, texts in answers, and the limits of a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.definitions import LOOKED_AT_PER_STEP, SHOWN_MAX, Effort, json_of, shown


@pytest.mark.parametrize("definition", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json(definition: bytes) -> None:
    with pytest.raises(IncompatibleSchema, match="no JSON"):
        json_of(definition)


def test_what_is_shown_is_short() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert shown("name") == "name"
    assert shown({"a": None}) == '{"a":null}'
    assert shown("n" * 1_000) == "n" * SHOWN_MAX + "..."
    assert len(shown(deep)) <= SHOWN_MAX + 3


def test_steps() -> None:
    effort = Effort(steps_max=2)
    for _ in range(2):
        with effort:
            pass
    with pytest.raises(IncompatibleSchema, match="too large"), effort:
        pass


def test_what_is_looked_through_takes_steps() -> None:
    effort = Effort(steps_max=2)
    effort.look_through(LOOKED_AT_PER_STEP - 1)
    effort.look_through(2 * LOOKED_AT_PER_STEP)
    with pytest.raises(IncompatibleSchema, match="too large"):
        effort.look_through(LOOKED_AT_PER_STEP)


def test_depth_comes_back() -> None:
    effort = Effort(depth_max=1)
    for _ in range(3):
        with effort:
            pass
    with effort, pytest.raises(IncompatibleSchema, match="too many steps"), effort:
        pass
