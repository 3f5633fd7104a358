"""Partitions add up."""

from magnetar.wire.http.admin.stats.partitioned_stats import Sum, summed


def test_what_adds_up_and_what_does_not() -> None:
    left = {
        "msgInCounter": 1,
        "lastPublishTimeStamp": 5,
        "topicCreationTimeStamp": 5,
        "type": None,
        "isDurable": True,
        "backlogQuotaLimitSize": 10,
        "topicEpoch": None,
    }
    right = {
        "msgInCounter": 2,
        "lastPublishTimeStamp": 4,
        "topicCreationTimeStamp": 4,
        "type": "Shared",
        "isDurable": False,
        "backlogQuotaLimitSize": 10,
        "topicEpoch": 3,
    }
    assert summed([left, right]) == {
        "msgInCounter": 3,
        "lastPublishTimeStamp": 5,
        "topicCreationTimeStamp": 4,
        "type": "Shared",
        "isDurable": True,
        "backlogQuotaLimitSize": 10,
        "topicEpoch": 3,
    }


def test_averages_are_those_of_the_parts() -> None:
    parts = [{"averageMsgSize": size, "avgMessagesPerEntry": 2} for size in (1.0, 2.0, 6.0)]
    assert summed(parts) == {"averageMsgSize": 3.0, "avgMessagesPerEntry": 2}


def test_nothing_waiting_is_older_than_nothing() -> None:
    parts = [{"earliestMsgPublishTimeInBacklog": time} for time in (-1, 7, 0, 5)]
    assert summed(parts) == {"earliestMsgPublishTimeInBacklog": 5}


def test_subscriptions_are_joined_by_name() -> None:
    part = {"subscriptions": {"s": {"msgBacklog": 1, "consumers": [{"consumerName": "c"}]}}}
    other = {"subscriptions": {"s": {"msgBacklog": 2, "consumers": []}, "t": {"msgBacklog": 4}}}
    whole = summed([part, other, part])["subscriptions"]
    assert whole["s"]["msgBacklog"] == 4
    assert whole["s"]["consumers"] == [{"consumerName": "c"}] * 2
    assert whole["t"] == {"msgBacklog": 4}


def test_what_was_added_is_not_changed() -> None:
    part = {
        "subscriptions": {"s": {"n": 1, "consumers": [1], "subscriptionProperties": {"a": "b"}}}
    }
    whole = Sum()
    whole.add(part)
    whole.add(part)
    assert part == {
        "subscriptions": {"s": {"n": 1, "consumers": [1], "subscriptionProperties": {"a": "b"}}}
    }
