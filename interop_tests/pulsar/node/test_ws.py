"""Pulsar's WebSocket API with ws, Node's client of WebSockets."""

import pytest

pytestmark = pytest.mark.node


def test_messages(play):
    assert play("messages") == {"receipts": True, "inOrder": True, "large": True, "date": True}


def test_what_is_refused(play):
    name = "persistent/public/default/t"
    expected = {
        "producer/persistent/nobody/nowhere/t": "HTTP 404",
        f"producer/{name}?compressionType=RAR": "HTTP 400",
        f"consumer/{name}": "HTTP 400",
        f"other/{name}": "HTTP 404",
    }
    assert play("refused", paths=list(expected)) == expected
