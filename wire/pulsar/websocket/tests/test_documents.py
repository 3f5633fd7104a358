"""The JSON documents have Apache's names, and what is not said has its defaults."""

import json
from collections.abc import Callable

import msgspec
import pytest

from magnetar.wire.pulsar.websocket import documents
from magnetar.wire.pulsar.websocket.documents import Delivered, Failure


def test_what_a_producer_says() -> None:
    said = documents.published('{"payload": "aGk=", "deliverAfterMs": 5, "unknown": [1]}')
    assert (said.payload, said.deliver_after_ms, said.key) == ("aGk=", 5, None)


NO_MESSAGES = [
    "",
    "[]",
    "{",
    '{"payload": []}',
    '{"properties": {"a": {}}}',
    '{"properties": 1}',
    '{"properties": {"a": null}}',
    '{"deliverAt": "x"}',
    '{"context": 5, "deliverAt": "x"}',
]


@pytest.mark.parametrize("text", NO_MESSAGES)
def test_what_is_no_message(text: str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        documents.published(text)


def test_numbers_for_texts() -> None:
    """As Jackson reads them; the example of Apache's documentation has such a context."""
    said = documents.published(
        '{"payload": "aGk=", "context": 5, "key": 1.5, "properties": {"a": true, "c": 7},'
        ' "deliverAfterMs": 5, "disableReplication": true, "replicationClusters": null}'
    )
    assert (said.context, said.key, said.deliver_after_ms) == ("5", "1.5", 5)
    assert said.disable_replication is True
    assert said.properties == {"a": "true", "c": "7"}
    assert documents.command('{"messageId": 5, "permitMessages": "3"}').permit_messages == 3


@pytest.mark.parametrize("read", [documents.published, documents.command])
def test_what_is_nested_too_deeply(read: Callable[[str], object]) -> None:
    with pytest.raises(msgspec.MsgspecError, match="too deeply"):
        read('{"unknown": ' + "[" * 2_000)


def test_keys_that_are_nested_too_deeply() -> None:
    with pytest.raises(msgspec.MsgspecError, match="too deeply"):
        documents.encryption_keys(b'{"key": {"unknown": ' + b"[" * 2_000)


def test_receipts() -> None:
    receipt = json.loads(documents.encoded(documents.stored("id", None)))
    assert receipt == {"result": "ok", "errorCode": 0, "schemaVersion": 0, "messageId": "id"}
    receipt = json.loads(documents.encoded(documents.failed(Failure.PAYLOAD, "why", "c")))
    assert receipt == {
        "result": "send-error:7",
        "errorCode": 7,
        "schemaVersion": 0,
        "errorMsg": "why",
        "context": "c",
    }


def test_a_message() -> None:
    message = json.loads(documents.encoded(Delivered("id", "aGk=", {}, "now")))
    assert message == {
        "messageId": "id",
        "payload": "aGk=",
        "properties": {},
        "publishTime": "now",
        "redeliveryCount": 0,
    }


def test_what_a_consumer_says() -> None:
    assert documents.command('{"messageId": "x"}').type is None
    assert documents.command('{"type": "permit", "permitMessages": 3}').permit_messages == 3
