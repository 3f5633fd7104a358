"""What one process takes upon itself, and what stock clients hear beyond it."""

import pulsar
import pytest

from magnetar import standalone
from wire.pulsar import commands_pb2 as pb
from wire.pulsar.tests import peer

REASON = "the server has its maximum of 1 connections"


def test_a_connection_too_many_hears_why(connect, raw, topic):
    """The C++ family takes any answer but a welcome for a broken connection, tries again until
    its operation times out, and then says so at once: never a hanging client.
    """
    with standalone(limits={"connections": 1}) as server:
        with raw(server) as first:
            first.introduce()
            with raw(server) as second:
                heard = second.ask(peer.connect())
                assert (heard.kind, heard.body.error) == ("ERROR", pb.NotAllowedError)
                assert heard.body.message == REASON
                assert second.until_closed() == []
            refused = connect(server.pulsar_url, operation_timeout_seconds=1)
            with pytest.raises((pulsar.Timeout, pulsar.ConnectError)):
                refused.create_producer(topic)
            assert first.ask(peer.ping()).kind == "PONG"
        welcome = connect(server.pulsar_url)
        welcome.create_producer(topic).send(b"there is room again")
