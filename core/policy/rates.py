"""Rate limits as tools send them: Pulsar's names, read into `throttle.RateLimit`. Pure.

Fields that are left out have the values that Apache's broker (4.2) stores for them.

A value that cannot be read as a rate decides nothing; -1 and 0 decide that there is no limit.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from magnetar.core.kernel.throttle import RateLimit


class PublishRate(Struct, frozen=True, rename="camel"):
    """The messages and bytes that all producers of a topic may send in a second."""

    publish_throttling_rate_in_msg: int = -1
    publish_throttling_rate_in_byte: int = -1


class DispatchRate(Struct, frozen=True, rename="camel"):
    """The messages and bytes that may be delivered in a period; 0 seconds stand for one."""

    dispatch_throttling_rate_in_msg: int = 0
    dispatch_throttling_rate_in_byte: int = 0
    relative_to_publish_rate: bool = False
    rate_period_in_second: int = 0


class SubscribeRate(Struct, frozen=True, rename="camel"):
    """How often one consumer may attach in a period."""

    subscribe_throttling_rate_per_consumer: int = -1
    rate_period_in_second: int = 30


class SubscriptionPolicies(Struct, frozen=True, rename="camel"):
    """The policies of one subscription (PIP-39's `SubscriptionPolicies`)."""

    dispatch_rate: DispatchRate | None = None


Rate = TypeVar("Rate", PublishRate, DispatchRate, SubscribeRate)


def _read(sent: Any, kind: type[Rate]) -> Rate | None:
    try:
        return msgspec.convert(sent, kind, strict=False)
    except msgspec.ValidationError:
        return None


def publish_rate(sent: Any) -> RateLimit | None:
    """Read a rate; None if it decides nothing."""
    read = _read(sent, PublishRate)
    if read is None:
        return None
    return limit_of(read.publish_throttling_rate_in_msg, read.publish_throttling_rate_in_byte)


def dispatch_rate(sent: Any) -> RateLimit | None:
    """Read a rate; None if it decides nothing."""
    return dispatch_rate_of(_read(sent, DispatchRate))


def of_subscriptions(sent: dict[str, SubscriptionPolicies]) -> dict[str, RateLimit]:
    """The dispatch rates of the subscriptions that have their own."""
    return {
        name: limit
        for name, policies in sent.items()
        if (limit := dispatch_rate_of(policies.dispatch_rate)) is not None
    }


def dispatch_rate_of(read: DispatchRate | None) -> RateLimit | None:
    """The limit of a rate; None for none."""
    if read is None:
        return None
    return limit_of(
        read.dispatch_throttling_rate_in_msg,
        read.dispatch_throttling_rate_in_byte,
        read.rate_period_in_second,
        relative=read.relative_to_publish_rate,
    )


def subscribe_rate(sent: Any) -> RateLimit | None:
    """Read a rate; None if it decides nothing."""
    read = _read(sent, SubscribeRate)
    if read is None:
        return None
    return limit_of(read.subscribe_throttling_rate_per_consumer, 0, read.rate_period_in_second)


def limit_of(
    messages: float, size: float, period_seconds: float = 1, *, relative: bool = False
) -> RateLimit:
    """Make a limit of the numbers of tools and settings; -1 and 0 are no limit."""
    period = period_seconds if period_seconds > 0 else 1
    return RateLimit(max(messages, 0), max(size, 0), period, relative)


def show_dispatch_rate(rate: RateLimit) -> dict[str, Any]:
    """As Apache's broker (4.2) shows the limit that holds."""
    return {
        "dispatchThrottlingRateInMsg": round(rate.messages),
        "dispatchThrottlingRateInByte": round(rate.bytes),
        "relativeToPublishRate": rate.relative,
        "ratePeriodInSecond": round(rate.period_seconds),
    }


def show_subscribe_rate(rate: RateLimit) -> dict[str, Any]:
    """As Apache's broker (4.2) shows the limit that holds."""
    return {
        "subscribeThrottlingRatePerConsumer": round(rate.messages),
        "ratePeriodInSecond": round(rate.period_seconds if rate.limits else 30),
    }
