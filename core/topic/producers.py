"""Who may write a topic: the four access modes, the epoch of exclusive producers, names. Pure.

    newcomer               nobody there   others there
    SHARED                 joins          joins; ProducerBusy beside an exclusive one or waiters
    EXCLUSIVE              takes it       ProducerFenced
    WAIT_FOR_EXCLUSIVE     takes it       waits its turn, in order of arrival
    EXCLUSIVE_WITH_FENCING takes it       takes it; all others are sent away, waiters are refused

Taking the topic raises the epoch. Whoever comes back with an older epoch has been fenced meanwhile
and stays so. A producer of the same name is the same one coming back if its epoch is higher (its old
connection is dead, we merely have not noticed), and a busy name otherwise.

Decide, then act: `attach` and `detach` change the books and return what is to be done. Invariant: at
most one exclusive holder, and nobody beside it; waiters only behind somebody.
"""

from __future__ import annotations

from msgspec import Struct

from core.errors import BrokerError, ProducerBusy, ProducerFenced
from core.topic.producer import AccessMode, Producer


class Decision(Struct, frozen=True):
    """What follows from an attach or a detach."""

    granted: Producer | None = None
    """May publish now."""
    epoch: int | None = None
    """Of the granted one, if it holds the topic alone; to be stored before it is told."""
    evicted: tuple[Producer, ...] = ()
    """Are to be sent away."""
    refused: tuple[tuple[Producer, BrokerError], ...] = ()
    """Have waited in vain."""


NOTHING = Decision()


class Producers:
    """See the module's docstring."""

    __slots__ = ("_by_name", "epoch", "holder", "waiting")

    def __init__(self) -> None:
        self._by_name: dict[str, Producer] = {}
        self.holder: Producer | None = None
        self.waiting: list[Producer] = []
        self.epoch = -1
        """-1 while nobody has ever held the topic alone."""

    def __len__(self) -> int:
        return len(self._by_name)

    def all(self) -> list[Producer]:
        """Those who may publish."""
        return list(self._by_name.values())

    def attach(self, newcomer: Producer, producers_max: int) -> Decision:
        """Let a producer in, make it wait, or raise."""
        replaced = self._replaced(newcomer)
        if replaced is not None:
            self._forget(replaced)
        evicted = (replaced,) if replaced is not None else ()
        if producers_max and len(self._by_name) >= producers_max:
            raise ProducerBusy("the topic has as many producers as it may")
        request = newcomer.request
        if request.topic_epoch is not None and request.topic_epoch < self.epoch:
            raise ProducerFenced(
                f"producer {newcomer.name} was fenced: its epoch {request.topic_epoch} is over,"
                f" the topic is at {self.epoch}"
            )
        if request.mode is AccessMode.SHARED:
            if self.holder is not None or self.waiting:
                raise ProducerBusy("the topic has an exclusive producer, or one waiting to be")
            self._by_name[newcomer.name] = newcomer
            return Decision(newcomer, None, evicted)
        if not self._by_name and not self.waiting:
            return self._take(newcomer, evicted)
        if request.mode is AccessMode.WAIT_FOR_EXCLUSIVE:
            self.waiting.append(newcomer)
            return Decision(evicted=evicted)
        if request.mode is AccessMode.EXCLUSIVE:
            raise ProducerFenced("the topic has other producers")
        return self._take_by_force(newcomer, evicted)

    def _replaced(self, newcomer: Producer) -> Producer | None:
        """The one of the same name that the newcomer is the return of, if there is one."""
        present = self._by_name.get(newcomer.name)
        if present is None:
            return None
        old, new = present.request, newcomer.request
        same_connection = old.address == new.address and present.id == newcomer.id
        may_return = same_connection or not new.name_is_users or old.metadata == new.metadata
        if new.epoch > old.epoch and may_return:
            return present
        raise ProducerBusy(f"producer with name {newcomer.name} is already connected to the topic")

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
            return NOTHING
        self._forget(leaver)
        if self._by_name or not self.waiting:
            return NOTHING
        return self._take(self.waiting.pop(0), ())

    def _forget(self, producer: Producer) -> None:
        if self._by_name.get(producer.name) is producer:
            del self._by_name[producer.name]
        if self.holder is producer:
            self.holder = None

    def drop_all(self) -> list[Producer]:
        """Everybody goes, those who wait as well."""
        everybody = [*self._by_name.values(), *self.waiting]
        self._by_name.clear()
        self.waiting.clear()
        self.holder = None
        return everybody
