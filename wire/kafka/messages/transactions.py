"""The messages of idempotent and transactional producers, and of tools for transactions."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    Request,
    Response,
    String,
    since,
)
from magnetar.wire.kafka.messages.parts import TopicErrors, TopicIndexes, TopicPartitions


class InitProducerIdRequest(Request):
    """Requests a producer id; for a transactional id, the next epoch of its id (KIP-98)."""

    KEY = ApiKey.INIT_PRODUCER_ID
    VERSIONS = (0, 5)
    FLEXIBLE = 2

    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1


class InitProducerIdResponse(Response):
    """The producer id, and the epoch, which fences earlier ones."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16


class AddTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[Int32]


class AddPartitionsToTxnRequest(Request):
    """Adds partitions to a transaction."""

    KEY = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS = (0, 3)
    FLEXIBLE = 3

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    topics: list[AddTopic]


class AddedPartition(Message):
    """The result of one partition."""

    partition_index: Int32
    partition_error_code: Int16


class AddedTopic(Message):
    """The results of one topic."""

    name: String
    results_by_partition: list[AddedPartition]


class AddPartitionsToTxnResponse(Response):
    """The result of each partition."""

    throttle_time_ms: Int32 = 0
    results_by_topic: list[AddedTopic]


class AddOffsetsToTxnRequest(Request):
    """Adds a group, whose offsets will be committed, to a transaction."""

    KEY = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Response):
    """The result of the addition."""

    throttle_time_ms: Int32 = 0
    error_code: Int16


class EndTxnRequest(Request):
    """Commits or aborts a transaction."""

    KEY = ApiKey.END_TXN
    VERSIONS = (0, 5)
    FLEXIBLE = 3

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Response):
    """The result; from version 5 on with the producer's next epoch (KIP-890)."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Annotated[Int64, since(5)] = -1
    producer_epoch: Annotated[Int16, since(5)] = -1


class TxnCommitPartition(Message):
    """The offset of one partition, and the client's metadata."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(2)] = -1
    committed_metadata: String | None


class TxnCommitTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[TxnCommitPartition]


class TxnOffsetCommitRequest(Request):
    """Adds offsets to a transaction; they are committed with it (KIP-98)."""

    KEY = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS = (0, 5)
    FLEXIBLE = 3

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Annotated[Int32, since(3)] = -1
    member_id: Annotated[String, since(3)] = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    topics: list[TxnCommitTopic]


class TxnOffsetCommitResponse(Response):
    """The result of each partition."""

    throttle_time_ms: Int32 = 0
    topics: list[TopicErrors]


class WriteMarker(Message):
    """The outcome of one transaction, and its partitions."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: list[TopicIndexes]
    coordinator_epoch: Int32


class WriteTxnMarkersRequest(Request):
    """Writes the markers of transactions, for their coordinator or a tool (KIP-664)."""

    KEY = ApiKey.WRITE_TXN_MARKERS
    VERSIONS = (1, 1)
    FLEXIBLE = 1

    markers: list[WriteMarker]


class WrittenMarker(Message):
    """The results of one marker."""

    producer_id: Int64
    topics: list[TopicErrors]


class WriteTxnMarkersResponse(Response):
    """The result of each marker."""

    markers: list[WrittenMarker]


class DescribeProducersRequest(Request):
    """Asks for the producers of partitions (KIP-664)."""

    KEY = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    topics: list[TopicIndexes]


class DescribedProducer(Message):
    """A producer id, with its epoch and last sequence number."""

    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class DescribedProducersPartition(Message):
    """The producers of one partition."""

    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    active_producers: list[DescribedProducer]


class DescribedProducersTopic(Message):
    """The producers of one topic."""

    name: String
    partitions: list[DescribedProducersPartition]


class DescribeProducersResponse(Response):
    """The producers of each partition."""

    throttle_time_ms: Int32 = 0
    topics: list[DescribedProducersTopic]


class DescribeTransactionsRequest(Request):
    """Describes transactions (KIP-664)."""

    KEY = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    transactional_ids: list[String]


class DescribedTransaction(Message):
    """A transaction, its producer and its partitions."""

    error_code: Int16
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TopicPartitions]


class DescribeTransactionsResponse(Response):
    """The requested transactions."""

    throttle_time_ms: Int32 = 0
    transaction_states: list[DescribedTransaction]


class ListTransactionsRequest(Request):
    """Lists transactions by state, producer id and age (KIP-664, KIP-994)."""

    KEY = ApiKey.LIST_TRANSACTIONS
    VERSIONS = (0, 1)
    FLEXIBLE = 0

    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Annotated[Int64, since(1)] = -1


class ListedTransaction(Message):
    """A transaction."""

    transactional_id: String
    producer_id: Int64
    transaction_state: String


class ListTransactionsResponse(Response):
    """The transactions that this broker coordinates."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: list[String]
    transaction_states: list[ListedTransaction]
