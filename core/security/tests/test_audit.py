"""The audit trail: its lines, and what a flood does."""

from __future__ import annotations

import json
from typing import Any

import trio

from magnetar.core.security import audit
from magnetar.core.security.audit import AuditTrail
from magnetar.core.security.identity import Identity
from magnetar.core.testing.clock import FixedClock

ALI = Identity("ali")


class Trail:
    """A trail and its lines."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.raw: list[bytes] = []
        self.trail = AuditTrail(self.clock, self.raw.append)

    @property
    def lines(self) -> list[dict[str, Any]]:
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in self.raw)
        return [json.loads(line) for line in self.raw]


def test_what_lines_say() -> None:
    made = Trail()
    made.trail.denied(ALI, "10.0.0.1", "write", "topic persistent://public/default/t")
    made.trail.changed(ALI, "10.0.0.1", "CreateTopics", ["topic t"], "error 36")
    made.trail.login_failed("10.0.0.2", "PLAIN", "eve", "the name or the password is wrong", 3)
    made.trail.login_failed("10.0.0.2", "PLAIN", "", "again", 1)
    lines = made.lines
    for line in lines:
        assert line.pop("time").endswith("Z")
    assert lines == [
        {
            "event": "denied",
            "who": "ali",
            "host": "10.0.0.1",
            "action": "write",
            "resource": "topic persistent://public/default/t",
        },
        {
            "event": "changed",
            "who": "ali",
            "host": "10.0.0.1",
            "operation": "CreateTopics",
            "resources": ["topic t"],
            "outcome": "error 36",
        },
        {
            "event": "login failed",
            "claimed": "eve",
            "host": "10.0.0.2",
            "mechanism": "PLAIN",
            "why": "the name or the password is wrong",
            "times": 3,
        },
        {"event": "login failed", "host": "10.0.0.2", "mechanism": "PLAIN", "why": "again"},
    ]


async def test_repeated_denials_are_counted(autojump_clock: object) -> None:
    made = Trail()
    for _ in range(5):
        made.trail.denied(ALI, "h", "read", "topic t")
    made.trail.denied(ALI, "h", "read", "topic u")
    assert [line["resource"] for line in made.lines] == ["topic t", "topic u"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.trail.run)
        await trio.sleep(audit.LOOK_SECONDS + 1)
        assert len(made.raw) == 2
        made.clock.forward(audit.REPEAT_SECONDS)
        await trio.sleep(audit.LOOK_SECONDS + 1)
        assert [line.get("times") for line in made.lines] == [None, None, 4]
        made.trail.denied(ALI, "h", "read", "topic t")
        made.trail.denied(ALI, "h", "read", "topic t")
        assert len(made.raw) == 4
        nursery.cancel_scope.cancel()
    assert made.lines[-1]["times"] == 1, "what is counted is written at the end"


def test_a_flood_is_cut_and_counted() -> None:
    made = Trail()
    for number in range(10 * audit.REPEATED_MAX):
        made.trail.denied(ALI, "h", "read", f"topic {number}")
        made.trail.login_failed("h", "PLAIN", "", "no", 1)
    assert len(made.raw) == audit.LINES_OF_ONE_MAX
    made.trail.changed(ALI, "h", "DELETE /x", [], "status 204")
    assert made.lines[-1]["omitted"] == 20 * audit.REPEATED_MAX - audit.LINES_OF_ONE_MAX
    before = len(made.raw)
    for number in range(2 * audit.LINES_MAX):
        made.trail.denied(ALI, f"h{number}", "read", "topic x")
    assert len(made.raw) == before + audit.LINES_MAX - audit.LINES_OF_ONE_MAX, "others have room"
    made.trail.changed(ALI, "h", "DELETE /x", [], "status 204")
    made.clock.forward(1)
    made.trail.denied(ALI, "h", "read", "topic x")
    assert "omitted" not in made.lines[-1]


def test_memory_is_bounded() -> None:
    made = Trail()
    for number in range(2 * audit.REPEATED_MAX):
        if number % audit.LINES_OF_ONE_MAX == 0:
            made.clock.forward(1)
        made.trail.denied(ALI, "h", "read", f"{number} " + 10_000 * "x")
    assert len(made.trail._denials) <= audit.REPEATED_MAX
    assert max(map(len, made.raw)) < 2 * audit.TEXT_MAX


def test_hostile_names() -> None:
    """A line stays a line."""
    made = Trail()
    for name in ("a\nb", '"}', "\ud800", "\0", "\u2028"):
        made.trail.denied(Identity(name), "h", "read", f"topic {name}")
    assert len(made.lines) == 5
    made.trail.changed(ALI, "h", "CreateTopics", [f"topic {n}" for n in range(1_000)], "done")
    assert (len(made.lines[-1]["resources"]), made.lines[-1]["more"]) == (100, 900)
