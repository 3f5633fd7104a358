"""What clients have used of their limits, on this server.

    `any`       whether there is any limit of a client: fronts ask for it with each request, and
                for nothing else without one
    `window`    the use of one kind by one client, None without a limit
    `bucket`    the same for mutations, which are refused beyond the limit rather than delayed
    `arrived`   a new connection from an address

Several connections share a limit (`limits.py`), several servers do not: each has its own windows.

A use is remembered for eleven seconds. What is older is forgotten when windows become many, and
beyond `WINDOWS_MAX` the oldest tenth, whatever their use: somebody who comes with ever new client
ids escapes their limits anyway, not that of the user.

Invariants: at most `WINDOWS_MAX` windows, and as many remembered lookups; after `changed` the next
use meets the new limits, with what was used before.
"""

from __future__ import annotations

from ipaddress import ip_address
from itertools import islice
from typing import Any, Final

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import RateLimit, Throttle
from magnetar.core.quotas.limits import QuotaKey, QuotaLimit, QuotaRules, QuotaScope
from magnetar.core.quotas.rate_window import BURST_SECONDS, WINDOW_SECONDS, RateWindow

WINDOWS_MAX: Final = 10_000
WAIT_SECONDS_MAX: Final = 1.0
"""The longest wait for time and for connections, as `quota.window.size.seconds` in Kafka."""
EVICTED: Final = 10
"""The part of the windows that is forgotten when there are too many."""

Named = tuple[QuotaKey, str, str]
"""A kind, with user and client id."""


class QuotaUsage:
    """See the module's docstring."""

    def __init__(self, clock: Clock) -> None:
        self.rules = QuotaRules()
        self.any = False
        self.generation = 0
        """Counts what makes windows that somebody has looked up invalid."""
        self.counts_connections = False
        """Whether there is any limit of an address."""
        self._clock = clock
        self._windows: dict[tuple[QuotaKey, QuotaScope], RateWindow] = {}
        self._buckets: dict[QuotaScope, Throttle] = {}
        self._known: dict[Named, RateWindow | None] = {}
        """The windows of clients that were looked up since the last change."""
        self._swept_at = clock.monotonic()

    def changed(self) -> None:
        """The rules have changed."""
        self.generation += 1
        entities = self.rules.by_entity
        self.any = any(entity.address is None for entity in entities)
        self.counts_connections = any(entity.address is not None for entity in entities)
        self._known.clear()
        if not entities:
            self._windows.clear()
            self._buckets.clear()

    def window(self, key: QuotaKey, user: str, client: str) -> RateWindow | None:
        """The use by a client; None without a limit. It is valid as long as `generation`."""
        named = (key, user, client)
        if named in self._known:
            return self._known[named]
        limit = self.rules.of_client(key, user, client)
        found = None if limit is None else self._window(key, limit)
        if len(self._known) >= WINDOWS_MAX:
            self._known.clear()
        self._known[named] = found
        return found

    def bucket(self, user: str, client: str) -> Throttle | None:
        """The mutations that a client may still make; None without a limit.

        Eleven seconds' worth at once (`TokenBucket.java` of Kafka 4.3, KIP-599).
        """
        limit = self.rules.of_client(QuotaKey.MUTATIONS, user, client)
        if limit is None:
            return None
        wanted = RateLimit(messages=limit.value * WINDOW_SECONDS, period_seconds=WINDOW_SECONDS)
        bucket = self._buckets.get(limit.scope)
        if bucket is None or bucket.limit != wanted:
            if len(self._buckets) >= WINDOWS_MAX:
                _forget(self._buckets, len(self._buckets) // EVICTED)
            bucket = self._buckets[limit.scope] = Throttle(wanted, self._clock.monotonic())
        return bucket

    def arrived(self, address: str) -> float:
        """Count a new connection; the seconds to wait if it is one too many, which counts not."""
        limit = self.rules.of_address(_plain(address)) if self.counts_connections else None
        if limit is None:
            return 0.0
        window, now = self._window(QuotaKey.CONNECTIONS, limit), self._clock.monotonic()
        wait = window.spend(1, now)
        if wait:
            window.spend(-1, now)
        return min(wait, WAIT_SECONDS_MAX)

    def _window(self, key: QuotaKey, limit: QuotaLimit) -> RateWindow:
        place = (key, limit.scope)
        window = self._windows.get(place)
        if window is None:
            if len(self._windows) >= WINDOWS_MAX:
                self._make_room()
            window = self._windows[place] = RateWindow(limit.value)
        window.limit = limit.value
        return window

    def _make_room(self) -> None:
        """Forget windows that are idle, not more often than they can become so; or the oldest."""
        now = self._clock.monotonic()
        if now - self._swept_at >= BURST_SECONDS:
            self._swept_at = now
            busy = {key: one for key, one in self._windows.items() if not one.is_idle(now)}
            self._windows = busy
        if len(self._windows) >= WINDOWS_MAX:
            _forget(self._windows, len(self._windows) // EVICTED)
        self.generation += 1
        self._known.clear()  # it refers to windows that are gone


def _plain(address: str) -> str:
    """An address as rules have it: that of IPv4, if it is written as one of IPv6."""
    try:
        found = ip_address(address.strip("[]"))
    except ValueError:
        return address
    return str((found.version == 6 and found.ipv4_mapped) or found)


def _forget(remembered: dict[Any, Any], count: int) -> None:
    """Forget the oldest."""
    for key in list(islice(remembered, max(count, 1))):
        del remembered[key]
