"""A broker small enough to read, for tests of the load generator; protobuf judges the bytes.

It keeps what was sent in a list and hands it out as its `script` says, so that a test can lose,
double or swap messages on purpose.
Invariant: a frame that protobuf refuses, or whose checksum is wrong, ends up in `complaints`.
"""

import socket
import struct
import threading
from collections.abc import Callable, Sequence

from crc32c import crc32c
from google.protobuf.message import DecodeError

from bench.tests.framed import Framed
from magnetar.wire.pulsar.commands_pb2 import BaseCommand, MessageMetadata

Script = Callable[[list[bytes]], Sequence[bytes]]
"""What is delivered of the entries in hand: all of them in order, unless a test says otherwise."""


def framed(command: BaseCommand, tail: bytes = b"") -> bytes:
    body = command.SerializeToString()
    return struct.pack(">II", 4 + len(body) + len(tail), len(body)) + body + tail


def reply(kind: str, **fields: object) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.Type.Value(kind.upper()))
    part = getattr(command, kind)
    part.SetInParent()
    for name, value in fields.items():
        setattr(part, name, value)
    return command


class Broker:
    """Answers on a port of its own until the block ends."""

    def __init__(self, script: Script = lambda entries: entries) -> None:
        self.script = script
        self.entries: list[bytes] = []
        self.metadata: list[MessageMetadata] = []
        self.acknowledged: list[int] = []
        self.complaints: list[str] = []
        self.heard_send = threading.Event()
        self.permits = 0
        self.delivered = 0
        self.consumer: socket.socket | None = None
        self.framed = Framed(self.read)
        self.port = self.framed.port

    def __enter__(self) -> "Broker":
        self.framed.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.framed.__exit__()

    def read(self, peer: socket.socket, frame: bytes) -> bool:
        command_size = int.from_bytes(frame[:4], "big")
        try:
            command = BaseCommand.FromString(frame[4 : 4 + command_size])
        except DecodeError as error:
            self.complaints.append(f"protobuf refuses a command: {error}")
            return False
        self.hear(peer, command, frame[4 + command_size :])
        return True

    def hear(self, peer: socket.socket, command: BaseCommand, tail: bytes) -> None:
        kind = BaseCommand.Type.Name(command.type).lower()
        answer = getattr(self, f"on_{kind}", None)
        if answer is None:
            self.complaints.append(f"unexpected {kind}")
            return
        answer(peer, getattr(command, kind), tail)

    def on_connect(self, peer, connect, _tail) -> None:
        answer = reply(
            "connected", server_version="test", protocol_version=connect.protocol_version
        )
        peer.sendall(framed(answer))

    def on_partitioned_metadata(self, peer, requested, _tail) -> None:
        found = {"request_id": requested.request_id, "partitions": 0, "response": 0}
        peer.sendall(framed(reply("partitioned_metadata_response", **found)))

    def on_lookup(self, peer, requested, _tail) -> None:
        found = {
            "request_id": requested.request_id,
            "response": 1,
            "broker_service_url": "pulsar://elsewhere:1",
        }
        peer.sendall(framed(reply("lookup_response", **found)))

    def on_producer(self, peer, requested, _tail) -> None:
        peer.sendall(
            framed(reply("producer_success", request_id=requested.request_id, producer_name="p-1"))
        )

    def on_subscribe(self, peer, requested, _tail) -> None:
        self.consumer = peer
        peer.sendall(framed(reply("success", request_id=requested.request_id)))

    def on_flow(self, _peer, flow, _tail) -> None:
        self.permits += flow.message_permits
        self.deliver()

    def on_ping(self, peer, _ping, _tail) -> None:
        peer.sendall(framed(reply("pong")))

    def on_ack(self, _peer, ack, _tail) -> None:
        self.acknowledged += [each.entry_id for each in ack.message_id]

    def on_send(self, peer, send, tail) -> None:
        metadata_size = int.from_bytes(tail[6:10], "big")
        if tail[:2] != b"\x0e\x01" or int.from_bytes(tail[2:6], "big") != crc32c(tail[6:]):
            self.complaints.append("wrong checksum")
        self.metadata.append(MessageMetadata.FromString(tail[10 : 10 + metadata_size]))
        self.entries.append(tail)
        self.heard_send.set()
        receipt = reply("send_receipt", producer_id=send.producer_id, sequence_id=send.sequence_id)
        receipt.send_receipt.message_id.ledger_id = 7
        receipt.send_receipt.message_id.entry_id = len(self.entries) - 1
        peer.sendall(framed(receipt))
        self.deliver()

    def deliver(self) -> None:
        plan = self.script(self.entries)
        while self.consumer is not None and self.permits > 0 and self.delivered < len(plan):
            message = reply("message", consumer_id=0)
            message.message.message_id.ledger_id = 7
            message.message.message_id.entry_id = self.delivered
            self.consumer.sendall(framed(message, plan[self.delivered]))
            self.delivered += 1
            self.permits -= 1
