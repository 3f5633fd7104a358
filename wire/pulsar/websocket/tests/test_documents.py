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


@pytest.mark.parametrize("text", ["", "[]", "{", '{"payload": 1}', '{"properties": {"a": {}}}'])
def test_what_is_no_message(text: str) -> None:
    with pytest.raises(msgspec.MsgspecError):
        documents.published(text)


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
