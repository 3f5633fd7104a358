"""Who may write a topic: the access modes (PIP-68), the epoch of exclusive producers, names. Pure.

    new producer           none attached  others attached
    SHARED                 joins          joins; ProducerBusy beside an exclusive one or waiters
    EXCLUSIVE              takes it       ProducerFenced
    WAIT_FOR_EXCLUSIVE     takes it       waits in order of arrival
    EXCLUSIVE_WITH_FENCING takes it       takes it; others are disconnected, waiters refused

Taking the topic raises the epoch. A producer with an older epoch was fenced meanwhile, and is
refused. A producer of the same name and a higher epoch is the same one after a reconnect, whose old
connection has not been noticed to be dead; it takes the place of its former self, in the topic or
in the queue (`AbstractTopic.tryOverwriteOldProducer` and `addProducer` of Pulsar 4.2). Otherwise
the name is busy.

`attach` and `detach` change the state and return what the caller is to do. Invariants: at most one
exclusive producer, and none beside it; producers wait only while one is attached; a refused
producer changes nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError, Invalid, ProducerBusy, ProducerFenced
from magnetar.core.topic.publishing.producer import AccessMode, Producer

EPOCH_CLAIMED_MAX: Final = 2**62
"""The highest epoch that a producer may claim. The epoch of a topic that was deleted and created
again is below those of its producers, so their claims count; but epochs have 64 bits, and after the
last one no producer could hold the topic alone.
"""


class Decision(Struct, frozen=True):
    """The consequences of an attach or a detach."""

    granted: Producer | None = None
    """The producer that may publish now."""
    epoch: int | None = None
    """The epoch of `granted`, if it holds the topic alone; stored before the producer gets it."""
    evicted: tuple[Producer, ...] = ()
    """Producers to disconnect."""
    refused: tuple[tuple[Producer, BrokerError], ...] = ()
    """Producers that waited and are refused."""


NO_CHANGE = Decision()


class Producers:
    """See the module's docstring."""

    __slots__ = ("_by_name", "epoch", "holder", "waiting")

    def __init__(self) -> None:
        self._by_name: dict[str, Producer] = {}
        self.holder: Producer | None = None
        self.waiting: list[Producer] = []
        self.epoch = -1
        """-1 while no producer has ever held the topic exclusively."""

    def __len__(self) -> int:
        return len(self._by_name)

    def all(self) -> list[Producer]:
        """The producers that may publish."""
        return list(self._by_name.values())

    def named(self, name: str) -> Producer | None:
        """The producer with that name, active or waiting."""
        waiting = (one for one in self.waiting if one.name == name)
        return self._by_name.get(name) or next(waiting, None)

    def attach(self, newcomer: Producer, producers_max: int) -> Decision:
        """Admit a producer, make it wait, or raise and change nothing."""
        replaced = self._replaced(newcomer)
        request = newcomer.request
        others = len(self._by_name) - (replaced is not None and replaced not in self.waiting)
        if producers_max and others >= producers_max:
            raise ProducerBusy("Topic reached max producers limit")
        self._check_epoch(newcomer)
        holds_it = replaced is not None and replaced is self.holder
        if request.mode is AccessMode.SHARED:
            if self.waiting or (self.holder is not None and not holds_it):
                raise ProducerBusy("the topic has an exclusive producer, or one waiting to be")
        elif request.mode is AccessMode.EXCLUSIVE and others:
            raise ProducerFenced("the topic has other producers")
        evicted = (replaced,) if replaced is not None else ()
        if request.mode is AccessMode.WAIT_FOR_EXCLUSIVE and others:
            self._queue(newcomer, replaced)
            return Decision(evicted=evicted)
        if replaced is not None:
            self._forget(replaced)
        if request.mode is AccessMode.SHARED:
            self._by_name[newcomer.name] = newcomer
            return Decision(newcomer, None, evicted)
        if others:
            return self._take_by_force(newcomer, evicted)
        return self._take(newcomer, evicted)

    def _check_epoch(self, newcomer: Producer) -> None:
        epoch = newcomer.request.topic_epoch
        if epoch is not None and epoch < self.epoch:
            raise _fenced(newcomer, self.epoch)
        if epoch is not None and epoch > max(self.epoch, EPOCH_CLAIMED_MAX):
            raise Invalid(f"no topic has reached the epoch {epoch}")

    def _replaced(self, newcomer: Producer) -> Producer | None:
        """The former self of a producer that has reconnected, if there is one."""
        present = self.named(newcomer.name)
        if present is None:
            return None
        old, new = present.request, newcomer.request
        same_connection = old.address == new.address and present.id == newcomer.id
        may_return = same_connection or not new.name_is_users or old.metadata == new.metadata
        if new.epoch > old.epoch and may_return:
            return present
        raise ProducerBusy(f"producer with name {newcomer.name} is already connected to the topic")

    def _queue(self, newcomer: Producer, replaced: Producer | None) -> None:
        """Queue a producer last, or at the place of its former self."""
        if replaced in self.waiting:
            self.waiting[self.waiting.index(replaced)] = newcomer
            return
        if replaced is not None:
            self._forget(replaced)
        self.waiting.append(newcomer)

    def _take(self, newcomer: Producer, evicted: tuple[Producer, ...]) -> Decision:
        request = newcomer.request
        # a producer that reconnects with the current epoch still holds the topic
        if request.topic_epoch is None or request.topic_epoch > self.epoch:
            self.epoch = max(self.epoch + 1, request.topic_epoch or 0)
        self._by_name[newcomer.name] = newcomer
        self.holder = newcomer
        return Decision(newcomer, self.epoch, evicted)

    def _take_by_force(self, newcomer: Producer, evicted: tuple[Producer, ...]) -> Decision:
        others = tuple(self._by_name.values())
        waiting, self.waiting = self.waiting, []
        self._by_name.clear()
        reason = ProducerFenced(f"producer {newcomer.name} has taken the topic")
        taken = self._take(newcomer, evicted + others)
        return Decision(
            taken.granted, taken.epoch, taken.evicted, tuple((one, reason) for one in waiting)
        )

    def detach(self, leaver: Producer) -> Decision:
        """A producer leaves; the first one that waits may get the topic."""
        if leaver in self.waiting:
            self.waiting.remove(leaver)
            return NO_CHANGE
        self._forget(leaver)
        if self._by_name:
            return NO_CHANGE
        refused: list[tuple[Producer, BrokerError]] = []
        while self.waiting:
            first = self.waiting.pop(0)
            epoch = first.request.topic_epoch
            if epoch is None or epoch >= self.epoch:
                taken = self._take(first, ())
                return Decision(taken.granted, taken.epoch, refused=tuple(refused))
            refused.append((first, _fenced(first, self.epoch)))
        return Decision(refused=tuple(refused)) if refused else NO_CHANGE

    def _forget(self, producer: Producer) -> None:
        if producer in self.waiting:
            self.waiting.remove(producer)
        if self._by_name.get(producer.name) is producer:
            del self._by_name[producer.name]
        if self.holder is producer:
            self.holder = None

    def drop_all(self) -> list[Producer]:
        """Remove all producers, waiting ones included."""
        everybody = [*self._by_name.values(), *self.waiting]
        self._by_name.clear()
        self.waiting.clear()
        self.holder = None
        return everybody


def _fenced(producer: Producer, epoch: int) -> ProducerFenced:
    return ProducerFenced(
        f"producer {producer.name} was fenced: its epoch {producer.request.topic_epoch} is over,"
        f" the topic is at {epoch}"
    )
