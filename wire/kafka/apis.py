"""The table of APIs: request, response and versions by API key.

It decodes requests from frames, and encodes responses to frames. The functions for a version are
compiled at its first use, so that nothing is spent on unused versions. The table has all APIs that
can be decoded; `session/versions.py` has those that are served.

Invariant: decoding any bytes raises nothing but `WireError`. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from magnetar.core.kernel.errors import WireError
from magnetar.core.link.wire import Piece
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec import reader
from magnetar.wire.kafka.codec.declare import Message, Request, Response
from magnetar.wire.kafka.codec.decoder import Decode, decoder
from magnetar.wire.kafka.codec.encoder import Encode, encoder
from magnetar.wire.kafka.codec.writer import varint
from magnetar.wire.kafka.messages import (
    acls,
    basics,
    configs,
    consumer_groups,
    groups,
    offsets,
    quorum,
    quotas,
    reassignments,
    records,
    sasl,
    scram,
    topics,
    transactions,
)

API_VERSIONS: Final = ApiKey.API_VERSIONS


class Api(NamedTuple):
    """A request and its response."""

    request: type[Request]
    response: type[Response]

    @property
    def name(self) -> str:
        return self.request.__name__.removesuffix("Request")

    def knows(self, version: int) -> bool:
        first, last = self.request.VERSIONS
        return first <= version <= last

    def is_flexible(self, version: int) -> bool:
        """Whether sizes are varints, and structures and headers end with tagged fields."""
        return version >= self.request.FLEXIBLE


_LIST: Final = (
    Api(records.ProduceRequest, records.ProduceResponse),
    Api(records.FetchRequest, records.FetchResponse),
    Api(records.ListOffsetsRequest, records.ListOffsetsResponse),
    Api(basics.MetadataRequest, basics.MetadataResponse),
    Api(offsets.OffsetCommitRequest, offsets.OffsetCommitResponse),
    Api(offsets.OffsetFetchRequest, offsets.OffsetFetchResponse),
    Api(basics.FindCoordinatorRequest, basics.FindCoordinatorResponse),
    Api(groups.JoinGroupRequest, groups.JoinGroupResponse),
    Api(groups.HeartbeatRequest, groups.HeartbeatResponse),
    Api(groups.LeaveGroupRequest, groups.LeaveGroupResponse),
    Api(groups.SyncGroupRequest, groups.SyncGroupResponse),
    Api(groups.DescribeGroupsRequest, groups.DescribeGroupsResponse),
    Api(groups.ListGroupsRequest, groups.ListGroupsResponse),
    Api(sasl.SaslHandshakeRequest, sasl.SaslHandshakeResponse),
    Api(basics.ApiVersionsRequest, basics.ApiVersionsResponse),
    Api(topics.CreateTopicsRequest, topics.CreateTopicsResponse),
    Api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse),
    Api(records.DeleteRecordsRequest, records.DeleteRecordsResponse),
    Api(transactions.InitProducerIdRequest, transactions.InitProducerIdResponse),
    Api(records.OffsetForLeaderEpochRequest, records.OffsetForLeaderEpochResponse),
    Api(transactions.AddPartitionsToTxnRequest, transactions.AddPartitionsToTxnResponse),
    Api(transactions.AddOffsetsToTxnRequest, transactions.AddOffsetsToTxnResponse),
    Api(transactions.EndTxnRequest, transactions.EndTxnResponse),
    Api(transactions.WriteTxnMarkersRequest, transactions.WriteTxnMarkersResponse),
    Api(transactions.TxnOffsetCommitRequest, transactions.TxnOffsetCommitResponse),
    Api(acls.DescribeAclsRequest, acls.DescribeAclsResponse),
    Api(acls.CreateAclsRequest, acls.CreateAclsResponse),
    Api(acls.DeleteAclsRequest, acls.DeleteAclsResponse),
    Api(configs.DescribeConfigsRequest, configs.DescribeConfigsResponse),
    Api(configs.AlterConfigsRequest, configs.AlterConfigsResponse),
    Api(reassignments.AlterReplicaLogDirsRequest, reassignments.AlterReplicaLogDirsResponse),
    Api(reassignments.DescribeLogDirsRequest, reassignments.DescribeLogDirsResponse),
    Api(sasl.SaslAuthenticateRequest, sasl.SaslAuthenticateResponse),
    Api(topics.CreatePartitionsRequest, topics.CreatePartitionsResponse),
    Api(groups.DeleteGroupsRequest, groups.DeleteGroupsResponse),
    Api(reassignments.ElectLeadersRequest, reassignments.ElectLeadersResponse),
    Api(configs.IncrementalAlterConfigsRequest, configs.IncrementalAlterConfigsResponse),
    Api(
        reassignments.AlterPartitionReassignmentsRequest,
        reassignments.AlterPartitionReassignmentsResponse,
    ),
    Api(
        reassignments.ListPartitionReassignmentsRequest,
        reassignments.ListPartitionReassignmentsResponse,
    ),
    Api(offsets.OffsetDeleteRequest, offsets.OffsetDeleteResponse),
    Api(quotas.DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse),
    Api(quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse),
    Api(scram.DescribeUserScramCredentialsRequest, scram.DescribeUserScramCredentialsResponse),
    Api(scram.AlterUserScramCredentialsRequest, scram.AlterUserScramCredentialsResponse),
    Api(quorum.DescribeQuorumRequest, quorum.DescribeQuorumResponse),
    Api(basics.DescribeClusterRequest, basics.DescribeClusterResponse),
    Api(transactions.DescribeProducersRequest, transactions.DescribeProducersResponse),
    Api(transactions.DescribeTransactionsRequest, transactions.DescribeTransactionsResponse),
    Api(transactions.ListTransactionsRequest, transactions.ListTransactionsResponse),
    Api(
        consumer_groups.ConsumerGroupHeartbeatRequest,
        consumer_groups.ConsumerGroupHeartbeatResponse,
    ),
    Api(
        consumer_groups.ConsumerGroupDescribeRequest,
        consumer_groups.ConsumerGroupDescribeResponse,
    ),
    Api(configs.ListConfigResourcesRequest, configs.ListConfigResourcesResponse),
    Api(basics.DescribeTopicPartitionsRequest, basics.DescribeTopicPartitionsResponse),
)

APIS: Final = {api.request.KEY: api for api in _LIST}


class RequestHeader(NamedTuple):
    """The header of a request."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    end: int
    """The offset of the request after it."""


_REQUEST_HEADER: Final = struct.Struct(">hhih")
_RESPONSE_HEADER: Final = struct.Struct(">ii")
_NO_TAGS: Final = b"\0"
_NOTHING_LISTED: Final = b"\x01"
"""An empty list in a flexible version; 0 is null."""
_COUNT: Final = struct.Struct(">i")


def decode_header(data: bytes, at: int) -> RequestHeader:
    """Decode the header of a known request, or of ApiVersions in any version."""
    try:
        key, version, correlation_id, size = _REQUEST_HEADER.unpack_from(data, at)
        at += _REQUEST_HEADER.size
        client_id = None
        if size >= 0:
            # The size of the client id is an int16 even in flexible headers (`RequestHeader.json`).
            if size > len(data) - at:
                raise reader.beyond("client_id")
            client_id = data[at : at + size].decode()
            at += size
        if _api(key, version).is_flexible(version):
            at = reader.skip_tags(data, at)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"the header of a request: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id, at)


def decode_request(key: int, version: int, data: bytes, at: int) -> Request | None:
    """Decode the request after its header; None for ApiVersions in an unknown version.

    That is answered as well, so that the client repeats it in a known version (KIP-511).
    """
    if not _api(key, version).knows(version):
        return None
    request: Request
    request, _ = _decoder(key, version)(data, at)
    return request


def encode_response(key: int, version: int, correlation_id: int, response: Response) -> list[Piece]:
    """Encode the frame of a response, in pieces."""
    pieces = _encoder(key, version)(response)
    tags = _NO_TAGS if _has_tags(key, version) else b""
    size = 4 + len(tags) + sum(map(len, pieces))
    return [_RESPONSE_HEADER.pack(size, correlation_id) + tags, *pieces]


def encode_parts(key: int, version: int, parts: Sequence[Message]) -> bytes:
    """Encode some elements of a response's list, for `encode_listed`."""
    flexible = _api(key, version).is_flexible(version)
    return b"".join(
        piece for part in parts for piece in encoder(type(part), version, flexible)(part)
    )


def encode_listed(
    request: tuple[int, int, int], response: Response, count: int, parts: Sequence[bytes]
) -> list[bytes]:
    """Encode the frame of a response whose last field is a list. The list is empty in `response`;
    its elements are encoded in `parts`. For lists that are too long to be encoded in one call.
    `request` is key, version and correlation id.
    """
    key, version, number = request
    pieces = encode_response(key, version, number, response)
    header = bytes(pieces.pop(0))
    bare = b"".join(pieces)
    if _api(key, version).is_flexible(version):
        assert bare.endswith(_NOTHING_LISTED + _NO_TAGS), "the list is not the last field"
        begin, end = bare[: -len(_NOTHING_LISTED + _NO_TAGS)], _NO_TAGS
        counted = varint(count + 1)
    else:
        begin, end, counted = bare[: -_COUNT.size], b"", _COUNT.pack(count)
    begin += counted
    size, _ = _RESPONSE_HEADER.unpack_from(header)
    size += len(begin) + sum(map(len, parts)) + len(end) - len(bare)
    header = _RESPONSE_HEADER.pack(size, number) + header[_RESPONSE_HEADER.size :]
    return [header + begin, *parts, end]


def _api(key: int, version: int) -> Api:
    """The API; raises for an unknown key or version, except for versions of ApiVersions."""
    api = APIS.get(key)
    if api is None:
        raise WireError(f"no request has the key {key}")
    if not api.knows(version) and key != API_VERSIONS:
        raise WireError(f"{api.name} has no version {version} here")
    return api


@cache
def _decoder(key: int, version: int) -> Decode:
    api = _api(key, version)
    return decoder(api.request, version, api.is_flexible(version))


@cache
def _encoder(key: int, version: int) -> Encode:
    api = _api(key, version)
    # Only ApiVersions may have an unknown version; all clients understand version 0
    # (KIP-511)
    spoken = version if api.knows(version) else 0
    return encoder(api.response, spoken, api.is_flexible(spoken))


@cache
def _has_tags(key: int, version: int) -> bool:
    """Whether the response's header has tagged fields (KIP-482). That of ApiVersions never has,
    because its reader does not know the versions of the broker yet (KIP-511).
    """
    return key != API_VERSIONS and _api(key, version).is_flexible(version)
