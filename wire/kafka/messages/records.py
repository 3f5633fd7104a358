"""The messages of Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from typing import Annotated

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    NO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Pieces,
    Request,
    Response,
    String,
    Uuid,
    View,
    since,
    tagged,
    until,
)
from magnetar.wire.kafka.messages.parts import LeaderIdAndEpoch, NodeEndpoint


class ProducePartition(Message):
    """The records for one partition, encoded by the client."""

    index: Int32
    records: View | None


class ProduceTopic(Message):
    """Records for partitions of one topic; from version 13 on by id."""

    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NO_UUID
    partition_data: list[ProducePartition]


class ProduceRequest(Request):
    """Appends records. With `acks` 0 the client expects no response, and none may be sent."""

    KEY = ApiKey.PRODUCE
    VERSIONS = (3, 13)
    FLEXIBLE = 9

    transactional_id: String | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: list[ProduceTopic]


class RefusedRecord(Message):
    """The error of a record for which its batch was refused (KIP-467)."""

    batch_index: Int32
    batch_index_error_message: String | None = None


class ProducedPartition(Message):
    """The offset of the records of one partition, or the error."""

    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    record_errors: Annotated[list[RefusedRecord], since(8)] = []
    error_message: Annotated[String | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, since(10), tagged(0)] = None
    """With NOT_LEADER_OR_FOLLOWER (KIP-951); a hint that does not fit Metadata has clients loop."""


class ProducedTopic(Message):
    """The results of one topic."""

    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NO_UUID
    partition_responses: list[ProducedPartition]


class ProduceResponse(Response):
    """The results of all topics."""

    responses: list[ProducedTopic]
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], since(10), tagged(0)] = []


class ReplicaState(Message):
    """The replica that fetches; consumers leave it out (KIP-903)."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Message):
    """The offset to fetch from in one partition, and the limit of bytes."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    partition_max_bytes: Int32
    replica_directory_id: Annotated[Uuid, since(17), tagged(0)] = NO_UUID
    high_watermark: Annotated[Int64, since(18), tagged(1)] = 9223372036854775807
    """The high watermark of a follower; the replica verification tool of 4.3 is one (KIP-1166)."""


class FetchTopic(Message):
    """Partitions of one topic to fetch from; from version 13 on by id."""

    topic: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NO_UUID
    partitions: list[FetchPartition]


class ForgetTopic(Message):
    """Partitions to remove from the fetch session (KIP-227)."""

    topic: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NO_UUID
    partitions: list[Int32]


class FetchRequest(Request):
    """Requests records: waits up to `max_wait_ms` for `min_bytes`."""

    KEY = ApiKey.FETCH
    VERSIONS = (4, 18)
    FLEXIBLE = 12

    cluster_id: Annotated[String | None, since(12), tagged(0)] = None
    replica_id: Annotated[Int32, until(14)] = -1
    replica_state: Annotated[ReplicaState | None, since(15), tagged(1)] = None
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2147483647
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7)] = 0
    session_epoch: Annotated[Int32, since(7)] = -1
    topics: list[FetchTopic]
    forgotten_topics_data: Annotated[list[ForgetTopic], since(7)] = []
    rack_id: Annotated[String, since(11)] = ""


class DivergingEpoch(Message):
    """The epoch at which a follower's log diverges from its leader's (KIP-595)."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Message):
    """A snapshot to fetch instead; only in the metadata log (KIP-630)."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Message):
    """An aborted transaction: a producer, and the first offset of its aborted records."""

    producer_id: Int64
    first_offset: Int64


class FetchedPartition(Message):
    """Whole batches of one partition, and its high watermark."""

    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    diverging_epoch: Annotated[DivergingEpoch | None, since(12), tagged(0)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, since(12), tagged(1)] = None
    snapshot_id: Annotated[SnapshotId | None, since(12), tagged(2)] = None
    aborted_transactions: list[AbortedTransaction] | None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    """The replica to read from (KIP-392); -1 for the leader."""
    records: Pieces | None


class FetchedTopic(Message):
    """Records of partitions of one topic."""

    topic: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = NO_UUID
    partitions: list[FetchedPartition]


class FetchResponse(Response):
    """The records of the partitions."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = 0
    """0 for no session, upon which clients send full requests (KIP-227)."""
    responses: list[FetchedTopic]
    node_endpoints: Annotated[list[NodeEndpoint], since(16), tagged(0)] = []


class ListOffsetsPartition(Message):
    """A partition and a timestamp; -1 is its end, -2 its start."""

    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4)] = -1
    timestamp: Int64


class ListOffsetsTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[ListOffsetsPartition]


class ListOffsetsRequest(Request):
    """Asks for the offset of each partition at a timestamp."""

    KEY = ApiKey.LIST_OFFSETS
    VERSIONS = (1, 10)
    FLEXIBLE = 6

    replica_id: Int32
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: list[ListOffsetsTopic]
    timeout_ms: Annotated[Int32, since(10)] = 0


class ListedOffsetsPartition(Message):
    """The first offset with this timestamp or a later one, and its timestamp; -1 for none."""

    partition_index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListedOffsetsTopic(Message):
    """Offsets in partitions of one topic."""

    name: String
    partitions: list[ListedOffsetsPartition]


class ListOffsetsResponse(Response):
    """The offsets for the timestamps."""

    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: list[ListedOffsetsTopic]


class EndEpochPartition(Message):
    """A partition and a leader epoch."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class EndEpochTopic(Message):
    """Partitions of one topic."""

    topic: String
    partitions: list[EndEpochPartition]


class OffsetForLeaderEpochRequest(Request):
    """Asks for the end offset of a leader epoch, so that consumers detect truncation (KIP-320)."""

    KEY = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS = (2, 4)
    FLEXIBLE = 4

    replica_id: Annotated[Int32, since(3)] = -2
    topics: list[EndEpochTopic]


class EndedEpochPartition(Message):
    """The last leader epoch up to the requested one, and its end offset."""

    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class EndedEpochTopic(Message):
    """The end offsets of one topic."""

    topic: String
    partitions: list[EndedEpochPartition]


class OffsetForLeaderEpochResponse(Response):
    """The end offsets of those leader epochs (KIP-320)."""

    throttle_time_ms: Int32 = 0
    topics: list[EndedEpochTopic]


class DeleteRecordsPartition(Message):
    """The new start offset of a partition; -1 is its end."""

    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Message):
    """Partitions of one topic."""

    name: String
    partitions: list[DeleteRecordsPartition]


class DeleteRecordsRequest(Request):
    """Deletes the records before the offsets."""

    KEY = ApiKey.DELETE_RECORDS
    VERSIONS = (0, 2)
    FLEXIBLE = 2

    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


class DeletedRecordsPartition(Message):
    """The start offset of a partition."""

    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeletedRecordsTopic(Message):
    """The start offsets of one topic."""

    name: String
    partitions: list[DeletedRecordsPartition]


class DeleteRecordsResponse(Response):
    """The start offsets of all topics."""

    throttle_time_ms: Int32 = 0
    topics: list[DeletedRecordsTopic]
