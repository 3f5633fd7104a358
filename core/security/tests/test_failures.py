"""Failed logins: late, counted, logged without secrets, limited by address."""

from __future__ import annotations

import logging
from contextlib import ExitStack

import pytest
import trio

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security import failures
from magnetar.core.security.audit import AuditTrail
from magnetar.core.security.conversation import BASIC, OAUTHBEARER, AuthPeer, claiming
from magnetar.core.security.failures import FAILURES_MAX, FailedLogins
from magnetar.core.security.tests.people import NameAndSecret
from magnetar.core.testing.clock import FixedClock


async def fail(made: FailedLogins, host: str, said: bytes = b"ali:wrong") -> str:
    conversation = made.watched(NameAndSecret(BASIC), BASIC, AuthPeer(host))
    with pytest.raises(Unauthenticated) as refused:
        await conversation.respond(said)
    assert conversation.identity is None
    return str(refused.value)


async def test_a_failure_takes_time_and_is_logged(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    made = FailedLogins(FixedClock())
    before = trio.current_time()
    await fail(made, "10.0.0.1")
    assert trio.current_time() - before == pytest.approx(failures.DELAY_SECONDS)
    (line,) = [each for each in caplog.messages if "authentication" in each]
    assert line == ("10.0.0.1: authentication by basic failed: the name or the secret is wrong")
    assert (made.failed, made.succeeded) == ({"basic": 1}, {})


async def test_an_address_that_guesses_has_to_wait(autojump_clock: object) -> None:
    clock = FixedClock()
    made = FailedLogins(clock)
    async with trio.open_nursery() as nursery:
        for _ in range(FAILURES_MAX):
            nursery.start_soon(fail, made, "10.0.0.1")
    assert "too many failed logins" in await fail(made, "10.0.0.1", b"ali:secret")
    other = made.watched(NameAndSecret(BASIC), BASIC, AuthPeer("10.0.0.2"))
    await other.respond(b"ali:secret")
    assert other.identity is not None
    clock.forward(failures.WINDOW_SECONDS)
    later = made.watched(NameAndSecret(BASIC), BASIC, AuthPeer("10.0.0.1"))
    await later.respond(b"ali:secret")
    assert later.identity is not None
    assert (made.failed, made.succeeded) == ({"basic": FAILURES_MAX + 1}, {"basic": 2})


class Explains:
    """A mechanism that tells its client of the refusal first, as OAUTHBEARER does."""

    identity = None
    refusal = ""

    async def respond(self, said: bytes) -> bytes:
        if self.refusal:
            raise Unauthenticated(self.refusal)
        self.refusal = "the token is forged"
        return b'{"status":"invalid_token"}'


async def test_a_client_that_leaves_after_the_refusal_has_failed(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    made = FailedLogins(FixedClock())
    conversation = made.watched(Explains(), OAUTHBEARER, AuthPeer("10.0.0.1"))
    before = trio.current_time()
    assert await conversation.respond(b"x")
    assert trio.current_time() - before == pytest.approx(failures.DELAY_SECONDS)
    assert made._by_host["10.0.0.1"].count == 1
    assert "the token is forged" in caplog.text
    with pytest.raises(Unauthenticated):
        await conversation.respond(b"\x01")
    assert made._by_host["10.0.0.1"].count == 1, "it has failed once"
    assert trio.current_time() - before == pytest.approx(failures.DELAY_SECONDS)


async def test_attempts_under_way_count(autojump_clock: object) -> None:
    """Or a thousand guesses at a time would be looked at before the first has failed."""
    made = FailedLogins(FixedClock())
    with ExitStack() as under_way:
        for _ in range(FAILURES_MAX - 1):
            under_way.enter_context(made.trying("10.0.0.1"))
        assert not made.is_barred("10.0.0.1"), "none has failed"
        made.note("10.0.0.1", BASIC, "no")
        assert made.is_barred("10.0.0.1")
        assert not made.is_barred("10.0.0.2")
    assert not made.is_barred("10.0.0.1")
    with ExitStack() as under_way:
        for _ in range(failures.TRYING_MAX):
            under_way.enter_context(made.trying("10.0.0.2"))
        assert made.is_barred("10.0.0.2")
    assert made._trying == {}


def test_addresses_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(failures, "ADDRESSES_MAX", 3)
    caplog.set_level(logging.ERROR, failures.__name__)
    made = FailedLogins(SystemClock())
    for number in range(10):
        made.note(f"10.0.0.{number}", BASIC, "no")
    assert list(made._by_host) == ["10.0.0.7", "10.0.0.8", "10.0.0.9"]


class Claiming(NameAndSecret):
    """Says who it claims to be."""

    async def respond(self, said: bytes) -> bytes:
        with claiming(said.decode().partition(":")[0]):
            return await super().respond(said)


async def test_who_is_claimed_is_logged(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[bytes] = []
    made = FailedLogins(FixedClock(), AuditTrail(FixedClock(), lines.append))
    conversation = made.watched(Claiming(BASIC), BASIC, AuthPeer("h"))
    with pytest.raises(Unauthenticated):
        await conversation.respond(("e\nve" + 200 * "x" + ":wrong").encode())
    name = "e\\nve" + 96 * "x"
    assert f"h: authentication by basic of '{name}' failed: " in caplog.text
    (line,) = lines
    assert b'"claimed":"e\\nve' in line
