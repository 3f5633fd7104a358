"""The audit trail: who was denied what, who changed what, and which logins failed. Each is one JSON
object on a line of its own, with `time` and `event`; `docs/security.md` has the other words.

    denied          an action that no rule allows; the same one again within `REPEAT_SECONDS` is
                    counted, and the count follows in a line of its own (`times`)
    changed         an administrative request, and how it ended
    login failed    as `failures.py` has it: one line an address and second

Changes are always written. Of the others at most `LINES_MAX` a second are, and of those of one
address `LINES_OF_ONE_MAX`, or a flood would fill the disk; `omitted` says how many were not.

Invariants: a line is handed over before the request that it is about is answered; memory is
bounded, whatever clients ask for; no secret is in a line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.security.identity import Identity

REPEAT_SECONDS: Final = 60.0
REPEATED_MAX: Final = 4_000
"""Denials that are known in order to count them; they have up to `TEXT_MAX` characters."""
LINES_MAX: Final = 200
LINES_OF_ONE_MAX: Final = 50
"""Of one address, or it would use up those of all others."""
TEXT_MAX: Final = 500
"""The longest name of a client in a line."""
NAMES_MAX: Final = 100
"""Names in one line of a change; the others are counted."""
LOOK_SECONDS: Final = 5.0

Denial = tuple[str, str, str, str]
"""Who, host, action, resource."""


class AuditTrail:
    """See the module's docstring."""

    def __init__(self, clock: Clock, write: Callable[[bytes], None]) -> None:
        self._clock = clock
        self._write = write
        self._denials: OrderedDict[Denial, tuple[float, int]] = OrderedDict()
        """When each was written, and how often it came since; the oldest first."""
        self._second = 0
        self._lines: dict[str, int] = {}
        """Lines of this second, by address."""
        self._written = 0
        self._omitted = 0

    def denied(self, who: Identity, host: str, action: str, resource: str) -> None:
        """Somebody may not do that. Plain call."""
        denial = _short(who.name), host, action, _short(resource)
        now = self._clock.monotonic()
        known = self._denials.get(denial)
        if known is not None and now - known[0] < REPEAT_SECONDS:
            self._denials[denial] = known[0], known[1] + 1
            return
        if known is not None:
            self._forget(denial)
        if self._may_write(host):
            self._denials[denial] = now, 0
            self._put("denied", _denial(denial))
        if len(self._denials) > REPEATED_MAX:
            self._forget(next(iter(self._denials)))

    def changed(
        self, who: Identity, host: str, operation: str, resources: Sequence[str], outcome: str
    ) -> None:
        """Somebody has changed something, or has tried to. Plain call."""
        found: dict[str, Any] = {"who": _short(who.name), "host": host}
        found["operation"] = _short(operation)
        if resources:
            found["resources"] = [_short(name) for name in resources[:NAMES_MAX]]
        if len(resources) > NAMES_MAX:
            found["more"] = len(resources) - NAMES_MAX
        self._put("changed", {**found, "outcome": _short(outcome)})

    def login_failed(self, host: str, mechanism: str, claimed: str, why: str, times: int) -> None:
        """A login failed of who claims that name, the last of so many of that address since its
        last line. Plain call.
        """
        if not self._may_write(host):
            return
        found: dict[str, Any] = {"claimed": _short(claimed)} if claimed else {}
        found |= {"host": host, "mechanism": _short(mechanism), "why": _short(why)}
        self._put("login failed", {**found, "times": times} if times > 1 else found)

    async def run(self) -> None:
        """Write the counts of what was repeated, until cancelled."""
        try:
            while True:
                await trio.sleep(LOOK_SECONDS)
                now = self._clock.monotonic()
                while self._denials:
                    denial, (written, _) = next(iter(self._denials.items()))
                    if now - written < REPEAT_SECONDS:
                        break
                    self._forget(denial)
        finally:
            while self._denials:
                self._forget(next(iter(self._denials)))

    def _forget(self, denial: Denial) -> None:
        _, times = self._denials.pop(denial)
        if times:
            self._put("denied", {**_denial(denial), "times": times})

    def _may_write(self, host: str) -> bool:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._lines, self._written = second, {}, 0
        lines = self._lines.get(host, 0)
        if lines >= LINES_OF_ONE_MAX or self._written >= LINES_MAX:
            self._omitted += 1
            return False
        self._lines[host] = lines + 1
        self._written += 1
        return True

    def _put(self, event: str, found: Mapping[str, Any]) -> None:
        now = datetime.fromtimestamp(self._clock.wall_ms() / 1000, UTC)
        time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"time": time, "event": event, **found}
        if self._omitted:
            line["omitted"], self._omitted = self._omitted, 0
        self._write(msgspec.json.encode(line) + b"\n")


def _denial(denial: Denial) -> dict[str, str]:
    return dict(zip(("who", "host", "action", "resource"), denial, strict=True))


def _short(text: str) -> str:
    """A text of a client, which may have a lone surrogate: that is not in UTF-8."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."
