"""Who may write a topic: the access modes (PIP-68), the epoch of exclusive producers, names. Pure.

    newcomer               nobody there   others there
    SHARED                 joins          joins; ProducerBusy beside an exclusive one or waiters
    EXCLUSIVE              takes it       ProducerFenced
    WAIT_FOR_EXCLUSIVE     takes it       waits its turn, in order of arrival
    EXCLUSIVE_WITH_FENCING takes it       takes it; all others are sent away, waiters are refused

Taking the topic raises the epoch. Whoever comes back with an older epoch has been fenced meanwhile
and stays so. A producer of the same name is the same one coming back if its epoch is higher (its
old connection is dead, we merely have not noticed) and it differs from a namesake; it takes the
place of its former self, be that the topic or a place in the queue. Otherwise the name is busy.

Decide, then act: `attach` and `detach` change the state and return what is to be done. Invariants:
at most one exclusive holder, and nobody beside it; waiters only behind somebody; a refused producer
leaves everything as it was.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import BrokerError, Invalid, ProducerBusy, ProducerFenced
from magnetar.core.topic.publishing.producer import AccessMode, Producer

EPOCH_CLAIMED_MAX: Final = 2**62
"""What a newcomer may say its epoch is, if its topic is not there yet. A topic that was deleted
begins anew below those that its producers have, so they count; but epochs travel as 64 bits, and
beyond the last of them nobody could hold the topic alone any more.
"""


class Decision(Struct, frozen=True):
    """What follows from an attach or a detach."""

    granted: Producer | None = None
    """May publish now."""
    epoch: int | None = None
    """Of the granted one, if it holds the topic alone; stored before the producer hears of it."""
    evicted: tuple[Producer, ...] = ()
    """Are to be sent away."""
    refused: tuple[tuple[Producer, BrokerError], ...] = ()
    """Have waited in vain."""


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
        """Those who may publish."""
        return list(self._by_name.values())

    def named(self, name: str) -> Producer | None:
        """The producer with that name, active or waiting."""
        waiting = (one for one in self.waiting if one.name == name)
        return self._by_name.get(name) or next(waiting, None)

    def attach(self, newcomer: Producer, producers_max: int) -> Decision:
        """Let a producer in, make it wait, or raise: then nothing has changed."""
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
        """The one of the same name that the newcomer is the return of, if there is one."""
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
        """Behind the others, or in the place it had before its connection broke."""
        if replaced in self.waiting:
            self.waiting[self.waiting.index(replaced)] = newcomer
            return
        if replaced is not None:
            self._forget(replaced)
        self.waiting.append(newcomer)

    def _take(self, newcomer: Producer, evicted: tuple[Producer, ...]) -> Decision:
        request = newcomer.request
        # one that comes back with the current epoch still holds it
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
        """A producer leaves; the first who waits may get the topic."""
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
