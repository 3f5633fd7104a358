"""What remains of a request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.conftest import fetch_request
from magnetar.wire.kafka.messages.groups import HeartbeatRequest
from magnetar.wire.kafka.session.splitting import split, unknown_ids


def allowing(*names: str) -> Any:
    def may(_action: Action, _kind: ResourceType, name: str) -> bool:
        return name in names

    return SimpleNamespace(may=may, must=may)


LOGS: Any = SimpleNamespace(name_at_once=lambda topic_id: "known" if topic_id[-1] == 1 else "")


def test_all_or_nothing() -> None:
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert split(allowing("g"), LOGS, beat.KEY, beat).request is beat
    refused = split(allowing(), LOGS, beat.KEY, beat)
    assert (refused.request, refused.response.error_code) == (None, 30)


def test_items_are_taken_out() -> None:
    request = fetch_request("a", 0)
    request.topics += fetch_request("b", 0).topics
    found = split(allowing("b"), LOGS, request.KEY, request)
    assert [topic.topic for topic in found.request.topics] == ["b"]
    assert [topic.topic for topic in found.refused] == ["a"]
    assert len(request.topics) == 2
    assert split(allowing("a", "b"), LOGS, request.KEY, request).request is request


def test_ids_without_a_name() -> None:
    request = fetch_request("", 0)
    request.topics[0].topic_id = bytes(15) + b"\1"
    request.topics += fetch_request("", 0).topics
    request.topics[1].topic_id = bytes(15) + b"\2"
    assert unknown_ids(LOGS, request.KEY, request) == [bytes(15) + b"\2"]
    found = split(allowing("known"), LOGS, request.KEY, request)
    assert [topic.partitions[0].error_code for topic in found.refused] == [100]
    assert unknown_ids(LOGS, 3, request) == []
