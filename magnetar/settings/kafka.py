"""Settings of the Kafka front: Kafka's own names and defaults, in snake case."""

from typing import Annotated

from msgspec import Meta, Struct


class Kafka(Struct, frozen=True):
    """The Kafka front. Topics and their policies are configured in `[broker]`."""

    broker_id: Annotated[int, Meta(description="Broker id of this server.", ge=0, le=2**31 - 1)] = 0
    advertised_listeners: Annotated[
        dict[str, str],
        Meta(
            description="Addresses given to clients, by listener, instead of those they used: "
            '{"kafka" = "host:port", "kafka_tls" = "host:port"}.'
        ),
    ] = {}
    num_partitions: Annotated[
        int, Meta(description="Partitions of an automatically created topic.", ge=1, le=10_000)
    ] = 1
    message_max_bytes: Annotated[
        int,
        # storage takes no larger entries
        Meta(
            description="Largest record batch in bytes; at most broker.max_message_size.",
            ge=1,
            le=16 * 1024 * 1024,
        ),
    ] = 1_048_588
    log_retention_ms: Annotated[
        int,
        Meta(
            description="How long topics created by Kafka clients keep records; -1 for ever.", ge=-1
        ),
    ] = 604_800_000
    transaction_max_timeout_ms: Annotated[
        int, Meta(description="Longest transaction timeout that a producer may set.", ge=1)
    ] = 900_000
    transactional_id_expiration_ms: Annotated[
        int, Meta(description="Forget a transactional id unused for this long.", ge=1)
    ] = 604_800_000
    group_initial_rebalance_delay_ms: Annotated[
        int,
        Meta(description="How long the first rebalance of a group waits for more members.", ge=0),
    ] = 0
    group_max_size: Annotated[
        int, Meta(description="Maximum number of members of one group.", ge=1)
    ] = 10_000
    group_min_session_timeout_ms: Annotated[
        int,
        Meta(description="Shortest session timeout that members of classic groups may set.", ge=1),
    ] = 6_000
    group_max_session_timeout_ms: Annotated[
        int,
        Meta(description="Longest session timeout that members of classic groups may set.", ge=1),
    ] = 1_800_000
    group_consumer_heartbeat_interval_ms: Annotated[
        int,
        Meta(description="Heartbeat interval of members in groups of the newer protocol.", ge=1),
    ] = 5_000
    group_consumer_session_timeout_ms: Annotated[
        int, Meta(description="Session timeout of members in groups of the newer protocol.", ge=1)
    ] = 45_000
    offsets_retention_minutes: Annotated[
        int,
        Meta(description="How long the offsets of an empty group are kept.", ge=1),
    ] = 10_080
    offsets_retention_check_interval_ms: Annotated[
        int, Meta(description="Time between checks for expired offsets.", ge=1)
    ] = 600_000
