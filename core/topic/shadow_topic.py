"""A shadow topic (PIP-180): shows the messages of another topic, its source, under its own name.

Its subscriptions, policies and rights are its own, so that many consumers, or those of another
team, get the messages with the ids that they have in the source, and hold back none of them there.
Nobody publishes to it. It is a shadow from its creation on, by a property of its record; partitions
are, by one of their topic (as Apache's broker has it, 4.2.4 as seen).

    source          shadow
    loaded          may be loaded, which loads its source (`Broker`)
    unloaded        is unloaded: its clients come back, and load both again
    deleted         cannot be loaded, and can be deleted; a new source of that name is its source

Invariants: a source is no shadow itself; a partition shows the partition of the same number; a
loaded shadow's source is loaded, and the shadow is fenced in the plain call that fences the source.
A source that has a shadow, loaded or not, is not deleted as unused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from magnetar.core.kernel.errors import (
    BrokerError,
    InvalidName,
    NotAllowed,
    NotReady,
    TopicNotFound,
)
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.ledger_list import CREATED
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.shadow_ledger import ONLY_READ, ShadowLedger

if TYPE_CHECKING:
    from magnetar.core.entry.form import TransactionalForm, TransactionKey
    from magnetar.core.kernel.rates import Inflow
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.policy.policies import Effective
    from magnetar.core.ports.ledger_store import Done
    from magnetar.core.topic.environment import Environment

SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"
"""The property of the record, as in Pulsar (`PersistentTopic.java` of 4.2)."""
SHADOW: Final = "magnetar.shadow:"
"""Begins the property by which a source without partitions knows one of its shadows, so that it is
not deleted as unused: it is stored before the shadow is, and may outlive it.
"""


def shadows_noted(properties: Mapping[str, str]) -> list[TopicName]:
    """The shadows that a source has, or had."""
    names = [key.removeprefix(SHADOW) for key in properties if key.startswith(SHADOW)]
    return [TopicName.parse(name) for name in names]


def source_named(properties: Mapping[str, str], name: TopicName) -> TopicName | None:
    """The source that properties name for a topic, or, by those of its topic, for a partition;
    `TopicNotFound` for what names no topic, since others may have written the record.
    """
    text = properties.get(SHADOW_SOURCE)
    if text is None:
        return None
    try:
        source = TopicName.parse(text)
    except InvalidName as error:
        raise TopicNotFound(f"the source of a shadow topic: {error}") from error
    return source.partition(name.partition_index) if name.partitioned else source


def source_in(record: bytes, name: TopicName) -> TopicName | None:
    """The source of a topic, by the list of its ledgers as it is stored; None if it is no shadow.
    Most are none, and their lists are not decoded for it.
    """
    if SHADOW_SOURCE.encode() not in record:
        return None
    return source_named(formats.decode_managed_ledger(record).properties, name)


def new_record(source: TopicName, now_ms: int) -> bytes:
    """The list of ledgers of a new shadow: it names none."""
    properties = {CREATED: str(now_ms), SHADOW_SOURCE: source.full}
    return formats.encode_managed_ledger(
        formats.ManagedLedgerInfo(ledgers=[], terminated=None, properties=properties)
    )


def _applied(policies: Effective) -> Effective:
    """Those in force: duplicates are looked for where messages are published."""
    return replace(policies, deduplication=False)


class ShadowTopic(PersistentTopic):
    """See the module's docstring."""

    def __init__(
        self, env: Environment, name: TopicName, policies: Effective, source: PersistentTopic
    ) -> None:
        """A source that is not loaded is as empty: its shadow is only deleted."""
        self._source = source
        super().__init__(env, name, _applied(policies))
        self.source, self.compacted = source, source.compacted

    def _new_ledger(self) -> ManagedLedger:
        storage, source = self.env.storage, self._source.ledger
        return ShadowLedger(storage, self.name.managed_ledger, self._advanced, self._lost, source)

    async def load(self) -> None:
        """Open it beside its source; `NotReady` if that is unloaded meanwhile."""
        self._source.shadows.append(self)
        try:
            await super().load()
            if self._source.fenced:
                raise NotReady(f"{self._source.name}, the source of {self.name}, is being unloaded")
        except BaseException:
            self._fence()
            raise

    def _fence(self) -> None:
        super()._fence()
        if self in self._source.shadows:
            self._source.shadows.remove(self)

    async def delete(self, claimed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Delete the shadow, and what its source knows of it; that stays if the source is not
        loaded, until it is unused itself.
        """
        await super().delete(claimed)
        with suppress(BrokerError):
            await self._source.ledger.set_property(f"{SHADOW}{self.name.full}", None)

    def set_policies(self, policies: Effective) -> None:
        super().set_policies(_applied(policies))

    def check_producer(self) -> None:
        raise NotAllowed(ONLY_READ)

    def check_may_have_transactions(self) -> None:
        raise NotAllowed(ONLY_READ)

    def end_at_once(
        self,
        form: TransactionalForm,
        key: TransactionKey,
        epoch: int,
        done: Done,
        *,
        committed: bool,
    ) -> None:
        done(None)  # none was begun in it

    def inflow(self) -> Inflow:
        """What its source has got: a rate of delivery may be relative to it."""
        return self._source.inflow()

    def idle(self, *, caught_up_is_enough: bool) -> bool:
        """Never: its source may be published to."""
        return False
