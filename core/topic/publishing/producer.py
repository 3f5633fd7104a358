"""A producer: its identity and its counters."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Protocol

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.kernel.rates import Inflow, Rates
from magnetar.core.kernel.structs import FrozenStruct


class AccessMode(enum.Enum):
    """How a producer shares its topic with others."""

    SHARED = "Shared"
    EXCLUSIVE = "Exclusive"
    WAIT_FOR_EXCLUSIVE = "WaitForExclusive"
    EXCLUSIVE_WITH_FENCING = "ExclusiveWithFencing"


class ProducerSink(Protocol):
    """The protocol's side of a producer. Plain calls; nothing here waits."""

    def granted(self, epoch: int | None) -> None:
        """Report that it may publish; `epoch` is that of exclusive producers."""
        ...

    def refused(self, error: BrokerError) -> None:
        """Report that it has waited for the topic in vain."""
        ...

    def closed_by_broker(self) -> None:
        """Report that it is detached; its client has to attach again."""
        ...


class ProducerRequest(FrozenStruct, frozen=True):
    """How a client asks to attach."""

    name: str
    name_is_users: bool
    """False for a name that the broker generated, which only its producer knows."""
    epoch: int = 0
    mode: AccessMode = AccessMode.SHARED
    topic_epoch: int | None = None
    metadata: Mapping[str, str] = {}
    address: str = ""
    client_version: str = ""
    partial: bool = False
    """Its client attaches to partitions on demand (PIP-79)."""


class Producer:
    """See the module's docstring."""

    __slots__ = (
        "bytes_in",
        "chunks_in",
        "connected_ms",
        "id",
        "messages_in",
        "rates",
        "request",
        "sink",
    )

    def __init__(
        self, producer_id: int, request: ProducerRequest, sink: ProducerSink, now_ms: int
    ) -> None:
        self.id = producer_id
        self.request = request
        self.sink = sink
        self.connected_ms = now_ms
        self.messages_in = self.bytes_in = self.chunks_in = 0
        self.rates = Rates(Inflow(), now_ms)

    @property
    def name(self) -> str:
        return self.request.name

    def inflow(self) -> Inflow:
        """Counts since it attached."""
        return Inflow(self.messages_in, self.bytes_in, self.chunks_in)
