"""Rates as tools write them."""

import pytest

from magnetar.core.kernel.throttle import UNLIMITED, RateLimit
from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.policy.rates import DispatchRate, SubscriptionPolicies, limit_of

IN_NAMESPACE = NamespacePolicies(
    publish_rate={
        "standalone": {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": -1}
    },
    dispatch_rate={"elsewhere": {"dispatchThrottlingRateInMsg": 7}},
    subscription_dispatch_rate={
        "standalone": {
            "dispatchThrottlingRateInMsg": -1,
            "dispatchThrottlingRateInByte": "4096",
            "relativeToPublishRate": False,
            "ratePeriodInSecond": 10,
        }
    },
    subscribe_rate={
        "standalone": {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 60}
    },
)


def test_rates_of_a_namespace_are_those_of_this_cluster() -> None:
    found = effective(Effective(), IN_NAMESPACE, TopicPolicies())
    assert found.publish_rate == RateLimit(7, 0)
    assert found.dispatch_rate == UNLIMITED
    assert found.subscription_dispatch_rate == RateLimit(0, 4096, 10)
    assert found.subscribe_rate == RateLimit(3, 0, 60)
    assert effective(Effective(), IN_NAMESPACE, TopicPolicies(), "elsewhere").dispatch_rate


def test_a_rate_may_be_relative_to_what_is_published() -> None:
    rate = {"dispatchThrottlingRateInMsg": 7, "relativeToPublishRate": True}
    found = effective(Effective(), NamespacePolicies(), TopicPolicies(dispatch_rate=rate))
    assert found.dispatch_rate == RateLimit(7, relative=True)


def test_a_topic_decides_for_itself_even_that_there_is_no_limit() -> None:
    topic = TopicPolicies(
        publish_rate={"publishThrottlingRateInMsg": -1},
        dispatch_rate={"dispatchThrottlingRateInMsg": 5},
    )
    broker = Effective(publish_rate=RateLimit(1), subscribe_rate=RateLimit(2))
    found = effective(broker, IN_NAMESPACE, topic)
    assert found.publish_rate == UNLIMITED
    assert found.dispatch_rate == RateLimit(5)
    assert effective(broker, NamespacePolicies(), TopicPolicies()).publish_rate == RateLimit(1)


RATES = [
    policy.name
    for policy in levels_of(Effective).effective
    if policy.shape and isinstance(policy.default, RateLimit)
]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("nonsense", [{"a": []}, [], 7, "x", {"standalone": 7}])
def test_nonsense_decides_nothing(rate: str, nonsense: object) -> None:
    topic = TopicPolicies(**{rate: nonsense if not isinstance(nonsense, dict) else 1})
    namespace = NamespacePolicies(**{rate: nonsense})
    found = getattr(effective(Effective(), namespace, topic), rate)
    assert not found.limits


def test_numbers_that_mean_no_limit() -> None:
    assert limit_of(-1, 0) == UNLIMITED
    assert limit_of(5, -1, 0) == RateLimit(5, 0, 1)


def test_a_subscription_has_its_own_rate_or_that_of_all() -> None:
    own = {"a": SubscriptionPolicies(DispatchRate(5)), "b": SubscriptionPolicies()}
    topic = TopicPolicies(
        subscription_rates=own, subscription_dispatch_rate={"dispatchThrottlingRateInMsg": 7}
    )
    found = effective(Effective(), NamespacePolicies(), topic)
    assert found.dispatch_rate_of("a") == RateLimit(5)
    assert found.dispatch_rate_of("b") == found.dispatch_rate_of("c") == RateLimit(7)
