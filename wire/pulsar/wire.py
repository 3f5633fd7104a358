"""One Pulsar connection without its socket: bytes in, events out, replies packed.

It joins the frame format (`frames`), the hot forms (`hot`) and all other commands (`commands`). Its
only state between frames is whether CONNECT was received, and whether its sender is known. The
session has producers, consumers and requests.

Invariants: no byte is parsed after `WireError` or `close`. Until its sender is known, no frame is
larger than `HELLO_BYTES_MAX`. While a client that must authenticate is
not known, nothing of it is parsed to an event but what it says to prove who it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec.structs import replace

from magnetar.core.kernel.errors import WireError
from magnetar.core.kernel.structs import FrozenStruct
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.link.large_frame import LargeFrame
from magnetar.wire.pulsar import commands, events, hot, replies
from magnetar.wire.pulsar.frames import (
    FRAME_SLACK_BYTES,
    MESSAGE_BYTES_MAX,
    checksum_fits,
    command_end,
    frame_end,
    tail_to_store,
)


class WireState(Enum):
    """The state of a connection."""

    CONNECTING = "connecting"
    """Before CONNECT."""
    AUTHENTICATING = "authenticating"
    """After CONNECT, until the session knows its sender; without authentication there is no such
    state. Clients send nothing meanwhile that was not asked for, not even PING."""
    OPEN = "open"
    CLOSED = "closed"
    """Nothing more is parsed; a last frame may still be sent."""


ONLY_FIRST: Final = (events.Connect,)
HELLO_BYTES_MAX: Final = 128 * 1024
"""The largest frame of a client that is not known: what it says may be kept for as long as it is
connected. Tokens are refused beyond 16 KiB, tickets of Kerberos have 64."""

ALLOWED: Final[Mapping[WireState, tuple[type, ...]]] = {
    WireState.CONNECTING: ONLY_FIRST,
    WireState.AUTHENTICATING: (events.AuthResponse,),
    WireState.OPEN: tuple(kind for kind in events.ALL if kind not in ONLY_FIRST),
    WireState.CLOSED: (),
}
"""The events that are valid in each state."""

HotParser = Callable[[bytes, int, hot.FrameLimits], tuple[int, events.Event | None]]

HOT: Final[Mapping[bytes, HotParser]] = {
    hot.SEND_HEAD: hot.parse_sends,
    hot.ACK_HEAD: hot.parse_acks,
    hot.FLOW_HEAD: hot.parse_flow,
}
"""Decoders by the first bytes of a command, used while OPEN."""


class WireOptions(FrozenStruct, frozen=True):
    """The options of the wire."""

    message_bytes_max: int = MESSAGE_BYTES_MAX
    verify_checksums: bool = True


class Recipient(NamedTuple):
    """The consumer that a MESSAGE is for, with the other fields about it."""

    consumer_id: int
    partition: int = -1
    epoch: int | None = None


class PulsarWire:
    """See the module's docstring."""

    packs_unasked = False
    bytes_held = 0

    def __init__(
        self,
        options: WireOptions = WireOptions(),  # noqa: B008 -- frozen
        *,
        guarded: bool = False,
    ) -> None:
        """`guarded` if its client must be `known` before it may do anything."""
        self.options = options
        self._guarded = guarded
        self.state = WireState.CONNECTING
        self.frame_bytes_wanted = 0
        self.exposes_broker_metadata = False
        """Whether messages are sent with broker metadata (PIP-70), as the client has requested."""
        self._limits = hot.FrameLimits(
            options.message_bytes_max + FRAME_SLACK_BYTES, options.verify_checksums
        )
        self._hot: Mapping[bytes, HotParser] = {}
        self._events: list[events.Event] = []
        self._outgoing: list[bytes] = []

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        """Parse all whole frames in `data`; returns how many bytes they took."""
        offset, size = 0, len(data)
        self.frame_bytes_wanted = 0
        while size - offset >= 4:
            parse = self._hot.get(data[offset + 8 : offset + 11])
            if parse is not None:
                behind, event = parse(data, offset, self._limits)
                if event is None and parse is hot.parse_acks:
                    behind, event = hot.parse_acks_in_transaction(data, offset, self._limits)
                if event is not None:
                    self._events.append(event)
                    offset = behind
                    continue
            try:
                end = self._take_any(data, offset, size)
            except WireError:
                self.close()
                raise
            if end == offset:
                break
            offset = end
        return offset

    def body_in(self, begin: bytes) -> tuple[int, int]:
        """Frames are received as a whole."""
        return 0, 0

    def feed_large(self, frame: LargeFrame) -> None:
        self.feed(frame.whole())

    def _take_any(self, data: bytes, offset: int, size: int) -> int:
        """Parse one frame; returns the offset after it, or `offset` if it is incomplete."""
        if self.state is WireState.CLOSED:
            raise WireError("bytes after the end")
        limit = self._limits.frame_bytes_max
        if self.state is not WireState.OPEN:
            limit = min(limit, HELLO_BYTES_MAX)
        end = frame_end(data, offset, limit)
        if end > size:
            self.frame_bytes_wanted = end - offset
            return offset
        self._parse_any(data, offset, end)
        return end

    def _parse_any(self, data: bytes, offset: int, end: int) -> None:
        behind = command_end(data, offset, end)
        event = commands.decode(data[offset + 8 : behind])
        if isinstance(event, commands.Send):
            event = self._with_tail(event, data[behind:end])
            if isinstance(event, events.Sends) and event.txn is not None:
                event = self._joined(event)
        if not isinstance(event, ALLOWED[self.state]):
            raise WireError(f"{type(event).__name__} while {self.state.value}")
        if self.state is WireState.CONNECTING:
            if self._guarded:
                self.state = WireState.AUTHENTICATING
            else:
                self.known()
        self._events.append(event)

    def known(self) -> None:
        """The client may send anything from now on."""
        self.state = WireState.OPEN
        self._hot = HOT

    def _with_tail(self, send: commands.Send, tail: bytes) -> events.Sends | events.BadChecksum:
        tail = tail_to_store(tail)
        if self._limits.verify and not checksum_fits(tail):
            return events.BadChecksum(send.producer_id, send.sequence_id)
        return events.Sends(
            send.producer_id,
            [tail],
            [send.sequence],
            len(tail),
            [send.count] if send.count != 1 else None,
            send.chunks,
            send.marker,
            send.txn,
            send.origin,
        )

    def _joined(self, one: events.Sends) -> events.Sends:
        """A message of a transaction, and those before it that may be in one run with it. These
        are not parsed by hand (`hot`), but published as the others are.
        """
        before = self._events[-1] if self._events else None
        if not isinstance(before, events.Sends) or not _is_one_run(before, one):
            return one
        self._events.pop()
        counts = before.counts
        if counts is not None or one.counts is not None:
            counts = counts or [1] * len(before.payloads)
            counts += one.counts or [1]
        before.payloads.extend(one.payloads)
        before.sequences.extend(one.sequences)
        return replace(before, size=before.size + one.size, counts=counts)

    def take_events(self) -> list[events.Event]:
        """Events since the last call."""
        taken, self._events = self._events, []
        return taken

    # -- out ----------------------------------------------------------------------------------

    def take_outgoing(self) -> list[bytes]:
        """The packed frames in order."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def reply(self, frame: bytes) -> None:
        """Pack one of `replies`."""
        self._outgoing.append(frame)

    def ping(self) -> None:
        self._outgoing.append(replies.PING)

    def pong(self) -> None:
        self._outgoing.append(replies.PONG)

    def receipts(
        self, producer_id: int, sequences: Sequence[bytes], ledger_id: int, first_entry_id: int
    ) -> None:
        """Pack receipts for messages stored consecutively from `first_entry_id` on."""
        self._outgoing.append(hot.receipts(producer_id, sequences, ledger_id, first_entry_id))

    def receipts_without_id(self, producer_id: int, sequences: Sequence[bytes]) -> None:
        """Pack receipts for messages that are not stored: duplicates, and dropped ones."""
        self._outgoing.append(hot.receipts_without_id(producer_id, sequences))

    def messages(
        self,
        to: Recipient,
        part: Slice,
        redelivery_counts: Sequence[int] | None = None,
        ack_sets: Sequence[int | None] | None = None,
    ) -> None:
        """Pack consecutive entries for a consumer.

        Broker metadata is forwarded or cut off, as the connection has requested. `ack_sets` are
        masks of unacknowledged batch indexes, None for whole entries.
        """
        if not part.payloads:
            return
        payloads: Sequence[bytes]
        if self.exposes_broker_metadata:
            payloads = part.stored()
        else:
            payloads = hot.without_broker_part(part.payloads)
        suffixes: hot.Suffix | Sequence[hot.Suffix]
        if redelivery_counts is None and ack_sets is None:
            suffixes = hot.suffix_of(to.partition, consumer_epoch=to.epoch)
        else:
            counts = redelivery_counts or [0] * len(payloads)
            masks = ack_sets or [None] * len(payloads)
            suffixes = [
                hot.suffix_of(to.partition, count, mask, to.epoch)
                for count, mask in zip(counts, masks, strict=True)
            ]
        self._outgoing += hot.messages(
            to.consumer_id, part.ledger_id, part.first_entry, payloads, suffixes
        )

    # -- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Parse nothing more; packed frames may still be sent."""
        self.state = WireState.CLOSED
        self._hot = {}
        self.frame_bytes_wanted = 0


def _is_one_run(before: events.Sends, one: events.Sends) -> bool:
    return (
        (before.producer_id, before.txn) == (one.producer_id, one.txn)
        and not (before.chunks or one.chunks or before.marker or one.marker)
        and before.origin is one.origin is None
        and len(before.payloads) < events.RUN_MESSAGES_MAX
        and before.size + one.size <= events.RUN_BYTES_MAX
    )
