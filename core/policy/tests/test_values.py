"""Values of policies, as settings give them."""

from magnetar.core.policy.values import AutoTopicCreation, BacklogQuota


def test_a_quota_is_there_only_if_it_limits() -> None:
    assert BacklogQuota.by_type(-1, -1, "producer_exception") == {}
    assert BacklogQuota.by_type(0, 5, "producer_exception") == {
        "destination_storage": BacklogQuota(0, -1, "producer_exception"),
        "message_age": BacklogQuota(-1, 5, "producer_exception"),
    }


def test_partitions_of_new_topics() -> None:
    assert AutoTopicCreation(topic_type="partitioned").partitions == 1
    assert AutoTopicCreation.of_type(True, "partitioned", 4).partitions == 4
    assert AutoTopicCreation.of_type(True, "non-partitioned", 4) == AutoTopicCreation()
    assert AutoTopicCreation(True, "non-partitioned", 4).partitions == 0
