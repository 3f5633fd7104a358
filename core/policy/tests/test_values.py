"""Values of policies, as settings give them."""

from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, effective
from magnetar.core.policy.values import (
    AutoTopicCreation,
    BacklogQuota,
    SchemaAutoUpdate,
    SchemaStrategy,
    schema_strategy,
)


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


def test_strategies_of_schemas_by_both_names() -> None:
    assert schema_strategy("FULL_TRANSITIVE") is SchemaStrategy.FULL_TRANSITIVE
    assert schema_strategy(SchemaStrategy.FORWARD) is SchemaStrategy.FORWARD
    assert schema_strategy("UNDEFINED") is schema_strategy("nonsense") is schema_strategy(7) is None
    older = {each.value: each.strategy.value for each in SchemaAutoUpdate}
    assert older["AutoUpdateDisabled"] == "ALWAYS_INCOMPATIBLE"
    assert older["BackwardTransitive"] == "BACKWARD_TRANSITIVE"
    assert set(older.values()) == set(SchemaStrategy) - {SchemaStrategy.UNDEFINED}


def test_the_older_name_decides_where_the_newer_does_not() -> None:
    def in_force(**decided: str) -> str:
        record = NamespacePolicies(**decided)
        return effective(Effective(), record, TopicPolicies()).schema_compatibility_strategy

    old = {"schema_auto_update_compatibility_strategy": "Backward"}
    assert in_force() == "FULL"
    assert in_force(**old) == "BACKWARD"
    assert in_force(**old, schema_compatibility_strategy="UNDEFINED") == "BACKWARD"
    assert in_force(**old, schema_compatibility_strategy="FORWARD") == "FORWARD"
    assert in_force(schema_auto_update_compatibility_strategy="nonsense") == "FULL"
