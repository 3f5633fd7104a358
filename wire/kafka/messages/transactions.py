"""Producers that must not write twice, and what they write as one."""

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
    """Assign a producer id; to a transactional id, the next epoch of its producer id (KIP-98)."""

    KEY = ApiKey.INIT_PRODUCER_ID
    VERSIONS = (0, 5)
    FLEXIBLE = 2

    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1


class InitProducerIdResponse(Response):
    """The number, and the epoch that fences all before it."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16


class AddTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[Int32]


class AddPartitionsToTxnRequest(Request):
    """I shall write to these partitions in this transaction."""

    KEY = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS = (0, 3)
    FLEXIBLE = 3

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    topics: list[AddTopic]


class AddedPartition(Message):
    """Whether one partition belongs to it now."""

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
    """I shall commit offsets of this group in this transaction."""

    KEY = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS = (0, 4)
    FLEXIBLE = 3

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Response):
    """Whether its offsets belong to the transaction now."""

    throttle_time_ms: Int32 = 0
    error_code: Int16


class EndTxnRequest(Request):
    """Commit or abort."""

    KEY = ApiKey.END_TXN
    VERSIONS = (0, 5)
    FLEXIBLE = 3

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Response):
    """It is decided; from version 5 on with the epoch to go on with."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Annotated[Int64, since(5)] = -1
    producer_epoch: Annotated[Int16, since(5)] = -1


class TxnCommitPartition(Message):
    """The offset to go on from in one partition, and a note of the client."""

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
    """Whether each offset waits for the end of the transaction."""

    throttle_time_ms: Int32 = 0
    topics: list[TopicErrors]


class WriteMarker(Message):
    """The end of one transaction, and the partitions that it touched."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: list[TopicIndexes]
    coordinator_epoch: Int32


class WriteTxnMarkersRequest(Request):
    """Mark these transactions as ended; from their coordinator, or a tool."""

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
    """A producer with a number, and how far it is."""

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
    """Describe these transactions."""

    KEY = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS = (0, 0)
    FLEXIBLE = 0

    transactional_ids: list[String]


class DescribedTransaction(Message):
    """A transaction, whose it is, and what it touched."""

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
    """List transactions in these states, of these producers, older than that (KIP-664, KIP-994)."""

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
    """The transactions that are coordinated here."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: list[String]
    transaction_states: list[ListedTransaction]
