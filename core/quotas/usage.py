"""What clients have used of their limits, on this server.

    `any`       whether there is any limit of a client: fronts ask for it with each request, and
                for nothing else without one
    `window`    the use of one kind by one client, None without a limit
    `bucket`    the same for mutations, which are refused beyond the limit rather than delayed
    `arrived`   a new connection from an address
    `throttled` somebody has to wait: for the metrics

Several connections share a limit (`limits.py`), several servers do not: each has its own windows.

A use is remembered until others need its place (`uses.py`): somebody who comes with ever new client
ids escapes their limits anyway, not that of the user, and frees nobody else from a wait.

Invariants: at most `ENTRIES_MAX` windows, as many buckets, and as many remembered lookups, under
names of bounded length (some 50 MB if all are as large as can be); after `changed` the next use
meets the new limits, with what was used before.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.throttle import RateLimit, Throttle
from magnetar.core.quotas import uses
from magnetar.core.quotas.limits import QuotaKey, QuotaLimit, QuotaRules
from magnetar.core.quotas.rate_window import WINDOW_SECONDS, RateWindow
from magnetar.core.quotas.uses import CountedName, CountedScope, Uses, counted, counted_scope

WAIT_SECONDS_MAX: Final = 1.0
"""The longest wait for time and for connections, as `quota.window.size.seconds` in Kafka."""

Named = tuple[QuotaKey, CountedName, CountedName]
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
        self.throttles = dict.fromkeys(QuotaKey, 0)
        """How often somebody was beyond a limit, by its kind."""
        self.throttled_seconds = dict.fromkeys(QuotaKey, 0.0)
        """The waits that came of it."""
        self._clock = clock
        self._windows = Uses[tuple[QuotaKey, CountedScope], RateWindow](lambda one: one.used_at)
        self._buckets = Uses[CountedScope, Throttle](lambda _: 0.0)
        self._known: dict[Named, RateWindow | None] = {}
        """The windows of clients that were looked up since the last change."""

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
        named = (key, counted(user), counted(client))
        if named in self._known:
            return self._known[named]
        limit = self.rules.of_client(key, user, client)
        found = None if limit is None else self._window(key, limit)
        if len(self._known) >= uses.ENTRIES_MAX:
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
        place = counted_scope(limit.scope)
        bucket = self._buckets.get(place)
        if bucket is not None and bucket.limit == wanted:
            self._buckets.touch(place)
            return bucket
        now = self._clock.monotonic()
        bucket = Throttle(wanted, now)
        self._buckets.put(place, bucket, now)
        return bucket

    def arrived(self, address: str) -> float:
        """Count a new connection; the seconds to wait if it is one too many, which counts not."""
        limit = self.rules.of_address(_plain(address)) if self.counts_connections else None
        if limit is None:
            return 0.0
        window, now = self._window(QuotaKey.CONNECTIONS, limit), self._clock.monotonic()
        wait = min(window.spend(1, now), WAIT_SECONDS_MAX)
        if wait:
            window.spend(-1, now)
            self.throttled(QuotaKey.CONNECTIONS, wait)
        return wait

    def throttled(self, key: QuotaKey, seconds: float) -> None:
        """Count a wait, as far as it is longer than one that goes on."""
        self.throttles[key] += 1
        self.throttled_seconds[key] += seconds

    def _window(self, key: QuotaKey, limit: QuotaLimit) -> RateWindow:
        place = (key, counted_scope(limit.scope))
        window = self._windows.get(place)
        if window is None:
            now = self._clock.monotonic()
            window = RateWindow(limit.value, now)
            if self._windows.put(place, window, now):
                self.generation += 1
                self._known.clear()  # it refers to windows that are gone
        window.limit = limit.value
        return window


def _plain(address: str) -> str:
    """An address as rules have it: that of IPv4, if it is written as one of IPv6."""
    try:
        found = ip_address(address.strip("[]"))
    except ValueError:
        return address
    return str((found.version == 6 and found.ipv4_mapped) or found)
