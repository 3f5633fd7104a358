"""What the requests of one connection use of its client's quotas (KIP-13, KIP-124, KIP-219).

    Produce     its bytes, when it starts
    Fetch       the bytes of its records, when it is answered. Beyond the quota they are not sent:
                the answer is empty, as Kafka's, and the client asks again
    changes     of topics: the partitions that they create or delete (KIP-599); what exceeds the
                quota is refused
    all         the time in which its handler runs on the loop. There is one loop, so that is the
                share of one thread, where Kafka counts that of all its threads. What storage and
                threads do meanwhile is not counted

Beyond a quota the connection is held (`ConnectionThrottle.hold`): its answers say for how long, it
is not read meanwhile, and requests that were received before wait. Requests without an identity,
and those that prove one, are free.

Invariant: only called while there is a quota (`QuotaUsage.any`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from magnetar.core.quotas.limits import QuotaKey
from magnetar.core.quotas.mutations import MutationQuota
from magnetar.core.quotas.usage import WAIT_SECONDS_MAX
from magnetar.core.quotas.uses import CountedName, counted
from magnetar.wire.kafka.api_keys import FETCH, PRODUCE, ApiKey
from magnetar.wire.kafka.messages.records import FetchRequest, FetchResponse
from magnetar.wire.kafka.session.sasl import PROVES

if TYPE_CHECKING:
    from magnetar.core.broker.connection_throttle import ConnectionThrottle
    from magnetar.core.kernel.clock import Clock
    from magnetar.core.quotas.rate_window import RateWindow
    from magnetar.core.quotas.usage import QuotaUsage
    from magnetar.wire.kafka.codec.declare import Response
    from magnetar.wire.kafka.session.context import Caller
    from magnetar.wire.kafka.wire import KafkaRequest

ANONYMOUS: Final = "ANONYMOUS"
"""The user of clients that do not authenticate (`KafkaPrincipal.ANONYMOUS`)."""
STRICT_SINCE: Final[Mapping[int, int]] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""Requests that mutate, and the versions in which clients know THROTTLING_QUOTA_EXCEEDED."""
PERCENT: Final = 100.0

Made = TypeVar("Made")


class RequestCharges:
    """See the module's docstring."""

    __slots__ = (
        "_begun",
        "_caller",
        "_client",
        "_clock",
        "_fetched",
        "_generation",
        "_identity",
        "_produced",
        "_throttle",
        "_time",
        "_usage",
    )

    def __init__(
        self, usage: QuotaUsage, caller: Caller, throttle: ConnectionThrottle, clock: Clock
    ) -> None:
        self._usage = usage
        self._caller = caller
        self._throttle = throttle
        self._clock = clock
        self._begun = -1.0
        """When the request whose plain call runs was begun; negative if its time is counted."""
        self._client: CountedName = ""
        """The client id of the request that was begun last; its digest, if it is long: it lives as
        long as the connection.
        """
        self._generation = -1
        self._identity = caller.identity
        self._produced: RateWindow | None = None
        self._fetched: RateWindow | None = None
        self._time: RateWindow | None = None

    @property
    def client_id(self) -> str | None:
        """The client id of the request that was begun last; None for a long one."""
        return self._client if isinstance(self._client, str) else None

    def _look_up(self, client_id: str) -> None:
        """Find the windows for a client id, unless they are those of the last one."""
        usage, identity, client = self._usage, self._caller.identity, counted(client_id)
        if (
            usage.generation == self._generation
            and client == self._client
            and identity is self._identity
        ):
            return
        self._client, self._identity = client, identity
        self._produced = self._fetched = self._time = None
        if self._caller.admitted:
            user = self._user
            self._produced = usage.window(QuotaKey.PRODUCED_BYTES, user, client_id)
            self._fetched = usage.window(QuotaKey.FETCHED_BYTES, user, client_id)
            self._time = usage.window(QuotaKey.REQUEST_TIME, user, client_id)
        self._generation = usage.generation  # looking up may have changed it

    def begin(self, request: KafkaRequest) -> None:
        """A request starts."""
        self._look_up(request.client_id)
        key, window = request.key, self._produced
        if key == PRODUCE:
            if window is not None:
                self._spend(QuotaKey.PRODUCED_BYTES, window, request.size)
        elif key == FETCH and self._fetched is not None:
            asked = request.request  # for no more, or it would never be within its quota
            assert isinstance(asked, FetchRequest)
            asked.max_bytes = min(asked.max_bytes, max(int(self._fetched.burst), 1))
        if self._time is not None and key not in PROVES:
            self._begun = self._clock.monotonic()

    def end(self) -> None:
        """Count the time of the plain call since `begin`, unless that is done."""
        begun = self._begun
        if begun >= 0:
            self._begun = -1.0
            self._spend_time(self._clock.monotonic() - begun)

    async def timed(self, key: int, client_id: str | None, work: Awaitable[Made]) -> Made:
        """Do the work of a request, and count its time; without a client id as that of the last
        one, even if limits have changed meanwhile.
        """
        if self._time is None or key in PROVES:
            return await work
        measured = Measured(work, self._clock.monotonic)
        made = await measured
        if client_id is not None:
            self._look_up(client_id)
        self._spend_time(measured.seconds)
        return made

    def mutations(self, request: KafkaRequest) -> MutationQuota | None:
        """The quota of what a request may change; None for no limit."""
        since = STRICT_SINCE.get(request.key)
        bucket = None if since is None else self._usage.bucket(self._user, request.client_id)
        if since is None or bucket is None:
            return None
        strict = request.version >= since
        hold = partial(self._hold, QuotaKey.MUTATIONS)
        return MutationQuota(bucket, self._clock, hold, strict=strict)

    def answered(self, request: KafkaRequest, response: Response) -> Response:
        """What a request is answered: an empty response if its records exceed the quota."""
        self.end()
        if isinstance(response, FetchResponse):
            self._look_up(request.client_id)
            window = self._fetched
            if window is not None and not self._fits(window, _size(response)):
                return FetchResponse(responses=[])
        return response

    def _fits(self, window: RateWindow, size: int) -> bool:
        """Count records that are about to be sent; False if they are not to be sent. If nothing
        else was, they are: a single batch may be larger than the quota of all the window.
        """
        now = self._clock.monotonic()
        is_first = not window.used(now)
        wait = window.spend(size, now) if size else 0.0
        if wait:
            self._hold(QuotaKey.FETCHED_BYTES, wait)
            if not is_first:
                window.spend(-size, now)
        return not wait or is_first

    def told(self, response: Response) -> None:
        """Put the time for which the connection is held into an answer."""
        if "throttle_time_ms" in response.__struct_fields__:
            wait_ms: Any = ceil(self._throttle.wait_seconds * 1000)
            response.throttle_time_ms = wait_ms  # type: ignore[attr-defined]

    def _spend_time(self, seconds: float) -> None:
        if self._time is not None:
            self._spend(QuotaKey.REQUEST_TIME, self._time, seconds * PERCENT, WAIT_SECONDS_MAX)

    def _spend(
        self, key: QuotaKey, window: RateWindow, amount: float, wait_max: float = inf
    ) -> None:
        wait = window.spend(amount, self._clock.monotonic())
        if wait:
            self._hold(key, min(wait, wait_max))

    def _hold(self, key: QuotaKey, seconds: float) -> None:
        self._usage.throttled(key, self._throttle.hold(seconds))

    @property
    def _user(self) -> str:
        return self._caller.identity.name or ANONYMOUS


def _size(response: FetchResponse) -> int:
    """The bytes of all records."""
    size = 0
    for topic in response.responses:
        for part in topic.partitions:
            records = part.records or b""
            size += len(records) if isinstance(records, bytes) else sum(map(len, records))
    return size


class Measured(Generic[Made]):
    """Awaits something, and counts the time in which it runs, not that in which it waits."""

    __slots__ = ("_now", "_work", "seconds")

    def __init__(self, work: Awaitable[Made], now: Callable[[], float]) -> None:
        self._work = work
        self._now = now
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, Made]:
        steps = self._work.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            begun = self._now()
            try:
                awaited = step()
            except StopIteration as end:
                made: Made = end.value
                return made
            finally:
                self.seconds += self._now() - begun
            try:
                step = partial(steps.send, (yield awaited))
            except BaseException as error:  # noqa: BLE001  # the work decides what it means
                step = partial(steps.throw, error)
