"""Logins that fail: answered late, logged, counted, and limited by address.

    a failure           is answered after `DELAY_SECONDS`, so that guessing takes time
    `FAILURES_MAX`      failures of one address within `WINDOW_SECONDS`: it has to wait until they
                        are that old, whatever it says, and its credentials are not looked at

    `TRYING_MAX`        attempts of one address that are looked at at a time, or that wait for it;
                        once one has failed, those under way count as failures

Kafka delays by `connection.failed.authentication.delay.ms` (100). There is no count by user, since
anybody could lock somebody else out.

Invariants: memory is bounded, whatever the number of addresses; no secret is logged.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.audit import AuditTrail
from magnetar.core.security.conversation import AuthPeer, Conversation
from magnetar.core.security.identity import Identity

log = logging.getLogger(__name__)

DELAY_SECONDS: Final = 0.3
WINDOW_SECONDS: Final = 10.0
FAILURES_MAX: Final = 50
TRYING_MAX: Final = 200
ADDRESSES_MAX: Final = 10_000
"""Addresses with failures that are remembered; the oldest failure is forgotten first."""
CLAIMED_MAX: Final = 100
"""Characters of a name in the log."""
LOGGED_SECONDS: Final = 1.0
"""One line of an address in this time; the others are counted in the next."""


class _Failed:
    """The failures of one address in its window."""

    __slots__ = ("count", "logged_at", "since", "unlogged")

    def __init__(self, now: float) -> None:
        self.since = now
        self.count = 0
        self.logged_at = -LOGGED_SECONDS
        self.unlogged = 0


class FailedLogins:
    """See the module's docstring."""

    def __init__(self, clock: Clock, audit: AuditTrail | None = None) -> None:
        self._clock = clock
        self._audit = audit
        self._by_host: OrderedDict[str, _Failed] = OrderedDict()
        self._trying: dict[str, int] = {}
        """Attempts under way, by address; not those that are told of their failure."""
        self.failed: dict[str, int] = {}
        self.succeeded: dict[str, int] = {}
        """Logins, by mechanism."""

    def watched(self, inner: Conversation, mechanism: str, peer: AuthPeer) -> Conversation:
        """A conversation whose failure is delayed and noted."""
        return _Watched(self, inner, mechanism, peer.host)

    def is_barred(self, host: str) -> bool:
        """Whether an address has failed so often that it must wait."""
        trying = self._trying.get(host, 0)
        found = self._by_host.get(host)
        if trying >= TRYING_MAX:
            return True
        if found is None or found.count + trying < FAILURES_MAX:
            return False
        return self._clock.monotonic() - found.since < WINDOW_SECONDS

    @contextmanager
    def trying(self, host: str) -> Iterator[None]:
        """Count an attempt while it is under way."""
        self._trying[host] = self._trying.get(host, 0) + 1
        try:
            yield
        finally:
            self._trying[host] -= 1
            if not self._trying[host]:
                del self._trying[host]

    def passed(self, mechanism: str) -> None:
        """Count a login that has succeeded."""
        self.succeeded[mechanism] = self.succeeded.get(mechanism, 0) + 1

    def note(self, host: str, mechanism: str, why: str, claimed: str = "") -> None:
        """Count a failure, and log it if that address was not logged just now; `claimed` is who the
        client says it is.
        """
        now = self._clock.monotonic()
        self.failed[mechanism] = self.failed.get(mechanism, 0) + 1
        found = self._by_host.pop(host, None)
        if found is None or now - found.since >= WINDOW_SECONDS:
            found = _Failed(now)
        self._by_host[host] = found
        found.count += 1
        if len(self._by_host) > ADDRESSES_MAX:
            self._by_host.popitem(last=False)
        if now - found.logged_at < LOGGED_SECONDS:
            found.unlogged += 1
            return
        more = f" ({found.unlogged} more since the last line)" if found.unlogged else ""
        who = f" of {claimed[:CLAIMED_MAX]!r}" if claimed else ""
        log.warning("%s: authentication by %s%s failed: %s%s", host, mechanism, who, why, more)
        if self._audit is not None:
            self._audit.login_failed(host, mechanism, claimed, why, found.unlogged + 1)
        found.logged_at, found.unlogged = now, 0


class _Watched:
    """A conversation whose failure is noted."""

    __slots__ = ("_failures", "_host", "_inner", "_mechanism", "_noted")

    def __init__(
        self, failures: FailedLogins, inner: Conversation, mechanism: str, host: str
    ) -> None:
        self._failures = failures
        self._inner = inner
        self._mechanism = mechanism
        self._host = host
        self._noted = False

    @property
    def identity(self) -> Identity | None:
        return self._inner.identity

    @property
    def refusal(self) -> str:
        return self._inner.refusal

    async def respond(self, said: bytes) -> bytes:
        failures = self._failures
        try:
            if failures.is_barred(self._host):
                raise Unauthenticated("too many failed logins from this address, wait a little")
            with failures.trying(self._host):
                answer = await self._inner.respond(said)
        except Unauthenticated as error:
            await self._note(str(error), error.claimed)
            raise
        if self._inner.refusal:
            await self._note(self._inner.refusal)
        elif self._inner.identity is not None:
            failures.passed(self._mechanism)
        return answer

    async def _note(self, why: str, claimed: str = "") -> None:
        """Note the failure, and delay its answer; once, since clients may leave after any."""
        if not self._noted:
            self._noted = True
            self._failures.note(self._host, self._mechanism, why, claimed)
            await trio.sleep(DELAY_SECONDS)
