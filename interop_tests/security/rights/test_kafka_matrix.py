"""Each request of Kafka's by each role: what docs/kafka.md says that it needs is what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop_tests.hostile.test_kafka_bytes import Peer
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import Field, FieldType, Message, fields_of
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.kafka.session.sasl import HELLO
from magnetar.wire.kafka.session.versions import SERVED

from .roles import GROUP, MAY, TOPIC, TRANSACTION, may, proof

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "kafka.md"
REFUSED = {29, 30, 31, 53, 65}
"""Not authorised for a topic, a group, the cluster, a transactional id, a delegation token."""
VERSIONS = {
    ApiKey.PRODUCE: 11,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.METADATA: 11,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
}
"""The last in which topics have names; of others the newest."""
NAMES = {
    "topic": TOPIC, "topic_name": TOPIC, "name": TOPIC, "topics": TOPIC, "topic_names": TOPIC,
    "subscribed_topic_names": TOPIC, "resource_name": TOPIC,
    "group_id": GROUP, "groups": GROUP, "groups_names": GROUP, "group_ids": GROUP, "group": GROUP,
    "key": GROUP, "coordinator_keys": GROUP,
    "transactional_id": TRANSACTION, "transactional_ids": TRANSACTION,
}  # fmt: skip
NUMBERS = {"acks": -1, "resource_type": 2}
ASKED: dict[str, str] = {
    "Metadata": "describe topic",
    "OffsetFetch": "describe group",
    "FindCoordinator": "describe group",
    "InitProducerId": "write transactional id",
    "DescribeConfigs": "describe configs topic",
    "AlterConfigs": "alter configs topic",
    "IncrementalAlterConfigs": "alter configs topic",
    "CreateTopics": "create topic or create cluster",
    "DeleteTopics": "delete topic or delete cluster",
    "OffsetForLeaderEpoch": "describe topic or cluster action cluster",
    "ListGroups": "",
    "ListTransactions": "",
    "DescribeCluster": "",
}
"""What the request of this test needs, where the document has several cases: part of its words.
Lists leave out what may not be seen, and are not refused.
"""


def documented() -> dict[str, str]:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.partition("\n| request | rights |\n|---|---|\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| (\w+) \| (.+) \|$", table, re.MULTILINE))


DOCUMENTED = documented()
KEYS = sorted(set(SERVED) - HELLO)


def request_of(key: int) -> tuple[Any, int]:
    """A request about what the matrix is about, and its version."""
    kind = APIS[key].request
    version = VERSIONS.get(key, SERVED[key][1])
    return _made(kind, version), version


def _made(kind: type[Message], version: int) -> Any:
    fields = [field for field in fields_of(kind) if field.is_in(version) and field.tag is None]
    return kind(**{field.name: _value(field, version) for field in fields})


def _value(field: Field, version: int) -> Any:
    if not isinstance(field.kind, FieldType):
        one: Any = _made(field.kind, version)
        return [one] if field.array else one
    if field.kind.name == "string" and field.name in NAMES:
        one = NAMES[field.name]
    elif field.may_be_null(version) and not field.array:
        return None
    else:
        empty: dict[str, Any] = {"string": "", "bool": False, "uuid": bytes(16)}
        empty |= {"bytes": b"", "view": b"", "pieces": b""}
        one = empty.get(field.kind.name, NUMBERS.get(field.name, 0))
    return [one] if field.array else one


def codes(found: Any) -> Iterator[int]:
    """All error codes in a response."""
    if isinstance(found, list):
        for one in found:
            yield from codes(one)
    elif isinstance(found, Message):
        for name in found.__struct_fields__:
            value = getattr(found, name)
            if name.endswith("error_code"):
                yield value
            yield from codes(value)


def authenticated(server: Any, role: str) -> Peer:
    peer = Peer(server)
    shaken = peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert shaken.error_code == 0
    said = b"\0x\0token:" + proof(role).encode()
    assert peer.ask(SaslAuthenticateRequest(auth_bytes=said), 2).error_code == 0
    return peer


def test_the_document_has_each_request() -> None:
    assert set(DOCUMENTED) == {APIS[key].name for key in KEYS}
    for name, right in ASKED.items():
        said = DOCUMENTED[name].replace(", or ", " or ")
        assert right in said or "topic, group or cluster" in said, name


@pytest.mark.parametrize("role", MAY)
def test_each_request(server: Any, role: str) -> None:
    wrong = []
    with authenticated(server, role) as peer:
        for key in KEYS:
            name = APIS[key].name
            right = ASKED.get(name, DOCUMENTED[name])
            found = peer.ask(*request_of(key))
            refused = not REFUSED.isdisjoint(codes(found))
            if refused is may(role, right):
                wrong.append((name, right, found))
    assert not wrong


def test_each_request_of_nobody(server: Any) -> None:
    """The connection is closed, and nothing is said."""
    for key in KEYS:
        request, version = request_of(key)
        with Peer(server) as peer, pytest.raises((AssertionError, ConnectionResetError)):
            peer.ask(request, version)
