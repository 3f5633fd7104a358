"""Answers made of the declarations of messages."""

from __future__ import annotations

from magnetar.wire.kafka.messages.groups import JoinGroupRequest
from magnetar.wire.kafka.messages.parts import TopicIndexes
from magnetar.wire.kafka.messages.topics import DeleteTopicsRequest
from magnetar.wire.kafka.messages.transactions import WriteMarker, WriteTxnMarkersRequest
from magnetar.wire.kafka.session.refusals import refusal


def test_a_whole_request() -> None:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, member_id="m", protocol_type="consumer", protocols=[]
    )
    response = refusal(request.KEY, request, 30)
    assert (response.error_code, response.member_id, response.members) == (30, "m", [])


def test_items_that_are_plain_names() -> None:
    request = DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=1)
    rows = refusal(request.KEY, request, 29).responses
    assert [(one.name, one.error_code) for one in rows] == [("a", 29), ("b", 29)]


def test_rows_within_rows() -> None:
    marker = WriteMarker(
        producer_id=7,
        producer_epoch=0,
        transaction_result=True,
        topics=[TopicIndexes(name="t", partition_indexes=[0, 3])],
        coordinator_epoch=0,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    (found,) = refusal(request.KEY, request, 31).markers
    parts = [(one.partition_index, one.error_code) for one in found.topics[0].partitions]
    assert (found.producer_id, parts) == (7, [(0, 31), (3, 31)])
