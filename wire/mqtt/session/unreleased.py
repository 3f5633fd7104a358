"""The messages of QoS 2 that a client has sent and not released. Pure.

    absent --begin--> storing --stored--> stored --release--> absent
                         `-----failed-----------------------> absent

An identifier that is storing or stored is a duplicate, whatever its DUP flag (4.3.3). Identifiers
take memory of all connections from `take_memory` on, until they are released or their run fails.

Invariant: an identifier is storing, stored or absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.wire.mqtt.budget import MemoryBudget
from magnetar.wire.mqtt.errors import PacketError
from magnetar.wire.mqtt.reason_codes import ReasonCode
from magnetar.wire.mqtt.session.pending_run import PendingRun
from magnetar.wire.mqtt.session.received_ids import ReceivedIds

ID_BYTES: Final = 4
"""What an identifier costs in a record, until it is released."""


class Unreleased:
    """See the module's docstring."""

    __slots__ = ("_bytes", "_memory", "_storing", "stored")

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self.stored = ReceivedIds(())
        self._storing: dict[int, None] = {}  # a set takes more memory, and most are empty
        self._bytes = 0

    @property
    def count(self) -> int:
        return len(self._storing) + self.stored.count

    def are_new(self, ids: Sequence[int]) -> bool:
        """Whether none of these was sent before, nor is one among them twice."""
        return (
            self._storing.keys().isdisjoint(ids)
            and not (self.stored.count and any(number in self.stored for number in ids))
            and len(set(ids)) == len(ids)
        )

    def is_storing(self, number: int) -> bool:
        return number in self._storing

    def is_stored(self, number: int) -> bool:
        return number in self.stored

    def begin(self, ids: Sequence[int]) -> None:
        """New messages are about to be stored."""
        self._storing.update(dict.fromkeys(ids))

    def take_memory(self, run: PendingRun) -> None:
        """Take the memory of a run's new identifiers."""
        size = ID_BYTES * len(run.twos)
        if not self._memory.take(size):
            raise PacketError(ReasonCode.QUOTA_EXCEEDED, "no memory for unreleased messages")
        run.id_bytes = size
        self._bytes += size

    def are_stored(self, ids: Sequence[int]) -> None:
        """Messages are stored, and wait for PUBREL."""
        for number in ids:
            self._storing.pop(number, None)
            self.stored.add(number)

    def have_failed(self, run: PendingRun) -> None:
        """The messages of a run are not stored: they may come again."""
        for number in run.twos:
            self._storing.pop(number, None)
        self._forget(run.id_bytes)

    def resume(self, numbers: Sequence[int]) -> bool:
        """Messages that a former connection has sent wait for PUBREL; False if there is no memory
        for them.
        """
        new = {number for number in numbers if number not in self.stored}
        if not self._memory.take(ID_BYTES * len(new)):
            return False
        self._bytes += ID_BYTES * len(new)
        for number in new:
            self.stored.add(number)
        return True

    def release(self, ids: Sequence[int]) -> list[int]:
        """PUBREL has come; returns those that were stored."""
        known = [number for number in ids if self.stored.discard(number)]
        self._forget(ID_BYTES * len(known))
        return known

    def close(self) -> None:
        """The connection is closed."""
        self._forget(self._bytes)

    def _forget(self, size: int) -> None:
        """Give back memory; no more than was taken, as a connection that is closed has none."""
        size = min(size, self._bytes)
        self._bytes -= size
        self._memory.give_back(size)
