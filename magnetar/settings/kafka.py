"""Settings of the Kafka front: Kafka's own names and defaults, in snake case."""

from typing import Annotated

from msgspec import Meta, Struct


class Kafka(Struct, frozen=True):
    """What Kafka's clients find. Topics and their policies are those of `[broker]`."""

    broker_id: Annotated[
        int, Meta(description="Number of this one broker.", ge=0, le=2**31 - 1)
    ] = 0
    advertised_listeners: Annotated[
        dict[str, str],
        Meta(
            description="Where clients are told to connect, if not where they did, by listener: "
            '{"kafka" = "host:port", "kafka_tls" = "host:port"}.'
        ),
    ] = {}
    num_partitions: Annotated[
        int, Meta(description="Of a topic that comes into being by being named.", ge=1, le=10_000)
    ] = 1
    message_max_bytes: Annotated[
        int,
        # storage takes no larger entries
        Meta(
            description="Bytes of one batch of records; broker.max_message_size is the most.",
            ge=1,
            le=16 * 1024 * 1024,
        ),
    ] = 1_048_588
    log_retention_ms: Annotated[
        int, Meta(description="What topics made by Kafka's clients keep; -1 for ever.", ge=-1)
    ] = 604_800_000
    transaction_max_timeout_ms: Annotated[
        int, Meta(description="The longest that producers may let a transaction go on.", ge=1)
    ] = 900_000
    transactional_id_expiration_ms: Annotated[
        int, Meta(description="Unused for so long, a transactional id is forgotten.", ge=1)
    ] = 604_800_000
    group_initial_rebalance_delay_ms: Annotated[
        int, Meta(description="How long the first member of a group waits for others.", ge=0)
    ] = 0
    group_max_size: Annotated[int, Meta(description="Members of one group.", ge=1)] = 10_000
    group_min_session_timeout_ms: Annotated[
        int, Meta(description="The shortest that members of classic groups may choose.", ge=1)
    ] = 6_000
    group_max_session_timeout_ms: Annotated[
        int, Meta(description="The longest that members of classic groups may choose.", ge=1)
    ] = 1_800_000
    group_consumer_heartbeat_interval_ms: Annotated[
        int,
        Meta(description="How often members of groups of the newer protocol are to call.", ge=1),
    ] = 5_000
    group_consumer_session_timeout_ms: Annotated[
        int, Meta(description="Silent for so long, such a member is gone.", ge=1)
    ] = 45_000
    offsets_retention_minutes: Annotated[
        int,
        Meta(description="How long offsets of a group are kept that nobody is in.", ge=1),
    ] = 10_080
    offsets_retention_check_interval_ms: Annotated[
        int, Meta(description="Between two looks for offsets that are to be forgotten.", ge=1)
    ] = 600_000
