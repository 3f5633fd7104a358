"""One MQTT connection without its socket: packets in, packets out.

    state         leaves for                                  permitted packets
    CONNECTING    OPEN by CONNECT, CLOSED                     CONNECT [MQTT-3.1.0-1]
    OPEN          CLOSED                                      all but CONNECT [MQTT-3.1.0-2]
    CLOSED                                                    nothing

The wire knows the protocol version and the maximum packet size. The session has identifiers, quotas
and topic aliases. An invalid packet ends the connection. A client of 5.0 gets the reason, in
CONNACK before it is connected and in DISCONNECT after that (4.13.1), but none between CONNECT and
CONNACK. Before 5.0 servers close without a reason, except for the return codes of CONNACK.

Invariant: after `PacketError` or `close`, no byte is parsed and nothing is packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from magnetar.core.kernel.pieces import size_of
from magnetar.core.link.large_frame import LargeFrame
from magnetar.wire.mqtt.codec import decode, encode
from magnetar.wire.mqtt.codec.acknowledgements import (
    KINDS,
    Acknowledgements,
    parse_acknowledgements,
)
from magnetar.wire.mqtt.codec.fields import varint_at
from magnetar.wire.mqtt.codec.packets import Packet, PacketType, Version
from magnetar.wire.mqtt.codec.publishes import Publishes, TopicNames, count_of, parse_publishes
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.traffic import Traffic

PACKET_BYTES_MAX: Final = 268_435_460
"""The largest remaining length, and the fixed header."""
CONTROL_BYTES_MAX: Final = 256 * 1024
"""The largest packet besides PUBLISH: client id, user name, password and will of a CONNECT may have
64 KiB each, and a SUBSCRIBE takes up to fifty times its size when it is decoded."""
_PUBLISH: Final = PacketType.PUBLISH << 4

Event = Packet | Publishes | Acknowledgements


class WireState(Enum):
    """See the module's docstring."""

    CONNECTING = "connecting"
    OPEN = "open"
    CLOSED = "closed"


OPEN: Final = WireState.OPEN
CLOSED: Final = WireState.CLOSED
V5: Final = Version.V5
"""A lookup of a member by its class costs 75 ns."""


class MqttWire:
    """See the module's docstring."""

    __slots__ = (
        "_events",
        "_names",
        "_outgoing",
        "_size_max",
        "_traffic",
        "answered",
        "frame_bytes_wanted",
        "state",
        "version",
    )

    packs_unasked = False
    bytes_held = 0

    def __init__(
        self,
        packet_bytes_max: int = PACKET_BYTES_MAX,
        traffic: Traffic | None = None,
        names: TopicNames | None = None,
    ) -> None:
        self.state = WireState.CONNECTING
        self.version = Version.V3_1_1
        """Before CONNECT, the version that every client understands."""
        self.answered = False
        """Whether a packet was sent besides AUTH. The first one is CONNACK, and DISCONNECT may not
        come before it [MQTT-3.14.0-1]."""
        self.frame_bytes_wanted = 0
        self._names = TopicNames() if names is None else names
        self._size_max = packet_bytes_max
        self._traffic = traffic or Traffic()
        self._events: list[Event] = []
        self._outgoing: list[bytes] = []

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        """Parse all whole packets in `data`; returns how many bytes they took."""
        at, size = 0, len(data)
        self.frame_bytes_wanted = 0
        try:
            while at < size:
                if self.state is CLOSED:
                    raise PacketError(ReasonCode.PROTOCOL_ERROR, "bytes after the end")
                if self.state is OPEN:
                    if data[at] & 0xF0 == _PUBLISH:
                        behind = self._take_publishes(data, at)
                    else:
                        behind = self._take_acknowledgements(data, at)
                    if behind > at:
                        at = behind
                        continue
                end = self._take(data, at, size)
                if end == at:
                    break
                at = end
        except PacketError as error:
            self._refuse(error)
            raise
        self._traffic.bytes_received += at
        return at

    def body_in(self, begin: bytes) -> tuple[int, int]:
        """Packets are received as a whole."""
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        self.feed(frame.whole())

    def take_events(self) -> Sequence[Event]:
        events, self._events = self._events, []
        return events

    def _take_acknowledgements(self, data: bytes, at: int) -> int:
        """Parse a run of one kind; returns the offset after it, or `at` for none."""
        if data[at] not in KINDS:
            return at
        at, found = parse_acknowledgements(data, at)
        if found is not None:
            self._events.append(found)
            self._traffic.packets_received += len(found.ids)
        return at

    def _take_publishes(self, data: bytes, at: int) -> int:
        """The same of PUBLISH."""
        behind, found = parse_publishes(data, at, self._names, self._size_max, self.version == V5)
        if found:
            self._events.append(Publishes(data, found))
            packets = found[0].packets if len(found) == 1 else count_of(found)
            self._traffic.packets_received += packets
        return behind

    def _take(self, data: bytes, at: int, size: int) -> int:
        """Parse one packet; returns the offset after it, or `at` if it is incomplete."""
        self._check_first(data[at])
        length, body_at = varint_at(data, at + 1, size)
        if not body_at:
            return at
        end = body_at + length
        limit = self._size_max if self.state is WireState.OPEN else CONTROL_BYTES_MAX
        if data[at] >> 4 != PacketType.PUBLISH:
            limit = min(limit, CONTROL_BYTES_MAX)
        if end - at > limit:
            raise PacketError(ReasonCode.PACKET_TOO_LARGE, f"a packet of {end - at} bytes")
        if end > size:
            self.frame_bytes_wanted = end - at
            return at
        self._events.append(self._decode(data[at], data[body_at:end]))
        self._traffic.packets_received += 1
        return end

    def _check_first(self, first: int) -> None:
        """Check the type of the first packet before it is complete."""
        if self.state is WireState.CONNECTING and first >> 4 != PacketType.CONNECT:
            raise PacketError(ReasonCode.PROTOCOL_ERROR, "the first packet is not CONNECT")

    def _decode(self, first: int, body: bytes) -> Packet:
        if self.state is WireState.OPEN:
            return decode.decode(first, body, self.version)
        if len(body) > 6:  # name and level are there: a client of 5.0 gets errors of 5.0
            self.version = Version.V5 if body[:7] == b"\0\x04MQTT\x05" else self.version
        packet = decode.decode_connect(first, body)
        self.version, self.state = packet.version, WireState.OPEN
        self._traffic.connects += 1
        return packet

    # -- out ----------------------------------------------------------------------------------

    def pack(self, packets: Sequence[bytes]) -> None:
        """Have encoded packets sent, unless the connection has ended."""
        if self.state is not CLOSED:
            self._outgoing += packets
            self.answered = True

    def pack_auth(self, packet: bytes) -> None:
        """Have AUTH sent, which may come before CONNACK."""
        if self.state is not WireState.CLOSED:
            self._outgoing.append(packet)

    def take_outgoing(self) -> list[bytes]:
        outgoing, self._outgoing = self._outgoing, []
        self._traffic.packets_sent += len(outgoing)
        self._traffic.bytes_sent += size_of(outgoing)
        return outgoing

    def _refuse(self, error: PacketError) -> None:
        """Pack the reason for closing, if the version has a packet for it."""
        if self.state is WireState.OPEN:
            if self.version == Version.V5 and self.answered:
                self._outgoing.append(encode.disconnect(error.reason))
        elif self.state is WireState.CONNECTING and self._has_code_for(error):
            self._outgoing.append(encode.connack(self.version, error.reason))
        self.state = WireState.CLOSED

    def _has_code_for(self, error: PacketError) -> bool:
        """Whether CONNACK can state the error: 3.1.1 has a code only for the protocol level."""
        return isinstance(error, PacketError) and (
            error.reason is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION or self.version == Version.V5
        )

    def close(self) -> None:
        """Parse nothing more."""
        self.state = WireState.CLOSED
