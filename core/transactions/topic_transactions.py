"""Transactions in which clients publish to topics and acknowledge in subscriptions.

Clients name them by id, in two halves: the number of a coordinator, and a number that is given
once. A client begins one, names each topic before it publishes there and each subscription before
it acknowledges there, and then has it committed or aborted. They are records of the coordinator
that serves other protocols, too (`coordinator.py`, which has the theory of decisions).

    state        stored in              leaves for
    ONGOING      its record; nowhere    COMMITTING or ABORTING by `end`, ABORTING by its time-out;
                 before the first name  gone by either, if it has no name
    COMMITTING   its record             gone, when every topic has its marker and every subscription
    ABORTING     its record             has acknowledged what it holds, or holds it no longer
    gone         nowhere

What belongs to it is stored elsewhere: published messages in their topics, marked with the id
(`core/topic/transaction_buffer.py` knows where it begins), and acknowledgements in cursors
(`core/ledger/cursor/pending_acks.py`).

Invariants:
 1. A topic or subscription takes part in nothing of a transaction before the record names it. So
    the end reaches everything, whatever crashes.
 2. Nothing is added to a transaction that is decided: `check_publish` and `check_acknowledge` are
    called in the turn of the loop in which a message is handed to its log, or an acknowledgement to
    its cursor.
 3. `end` returns when the outcome is decided for good, and seen by every consumer from then on: a
    commit when every topic and subscription has it in memory, an abort when it is stored there. If
    that takes too long it raises `NotReady`; the decision stands, and `end` may be repeated.

What a crash leaves, by the last step that was stored:

    begun                       nothing: its client hears that it does not exist, and begins again
    a name added                it goes on: its client may, and else its time-out ends it
    a message, an ack           they are undecided until the end, which the record's names ensure
    the decision                `open` carries it out; markers and acks that were stored before are
                                not changed by their repetition
    the outcome everywhere      the id is not known any more, and `end` has returned, of a commit
                                before; a restart before the record is deleted carries the decision
                                out again, in vain (records are deleted many at a time, a while
                                later)

Only who began a transaction may use it, and superusers. Somebody else's is not found.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio

from magnetar.core.entry.form import TransactionalForm
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import (
    BrokerError,
    NotAllowed,
    NotCoordinator,
    NotReady,
    Overloaded,
    TopicNotFound,
    TransactionNotFound,
    WrongTransactionState,
)
from magnetar.core.kernel.names import SYSTEM_NAMESPACE, TopicName
from magnetar.core.ports.ledger_store import Done
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.transactions.additions import Addition
from magnetar.core.transactions.at_once import Owns, TransactionsAtOnce
from magnetar.core.transactions.coordinator import TransactionCoordinator, nothing_pending
from magnetar.core.transactions.hanging import HangingTransactions
from magnetar.core.transactions.kind import TransactionKind
from magnetar.core.transactions.slot import TransactionSlot
from magnetar.core.transactions.topic_host import TopicHost
from magnetar.core.transactions.transaction import Transaction, TransactionState, bytes_of_names
from magnetar.core.transactions.transaction_id import TransactionId, id_named, id_of, name_of, shown

RECORDS: Final = "/magnetar/transactions/by-id"
NUMBERS: Final = "/magnetar/transactions/numbers"
NUMBERS_AT_ONCE: Final = 1_024
"""Numbers that one write of the metadata reserves; a restart skips the rest of them."""
COORDINATORS: Final = 16
"""How many coordinators clients share the transactions among, as Pulsar's tools set up."""
COORDINATORS_TOPIC: Final = TopicName.parse(
    f"persistent://{SYSTEM_NAMESPACE}/transaction_coordinator_assign"
)
"""A topic in name only: it has a partition for each coordinator, by which clients look coordinators
up (`SystemTopicNames.java` of 4.2). It has them also while transactions are off, so that clients go
on to ask a coordinator, and hear why.
"""
OPEN_MAX: Final = 50_000
"""Transactions that are not ended. Each takes a kilobyte, and the names of its topics."""
NAMES_MAX: Final = 5_000
"""Topics and subscriptions of one transaction."""
NAMES_BYTES_MAX: Final = 900_000
"""What their names may take in the record, so that it fits into a znode with the rest of it."""
ALL_NAMES_BYTES_MAX: Final = 128 * 1024 * 1024
"""What the names of all transactions that are not ended may take in memory."""
END_SECONDS_MAX: Final = 30.0
"""How long `end` waits for the outcome to be stored everywhere; a client may ask again."""
TTL_MS_MAX: Final = 1 << 53


class TransactionCounts:
    """The transactions of one coordinator since the start."""

    __slots__ = ("aborted", "begun", "committed", "timed_out")

    def __init__(self) -> None:
        self.begun = self.committed = 0
        self.aborted = 0
        """With those whose time was over."""
        self.timed_out = 0

    def decided(self, *, commit: bool, timed_out: bool) -> None:
        if commit:
            self.committed += 1
        else:
            self.aborted += 1
            self.timed_out += timed_out


class TopicTransactions:
    """See the module's docstring."""

    def __init__(self, broker: TopicHost, form: TransactionalForm) -> None:
        self._broker = broker
        self.counts = [TransactionCounts() for _ in range(COORDINATORS)]
        kind = TransactionKind(
            id_of, self._show, self._store, self._settle, is_reused=False, decided=self._decided
        )
        self._coordinator = TransactionCoordinator(broker, RECORDS, form, nothing_pending, kind)
        self.hanging = HangingTransactions(broker, self._coordinator, form)
        self._next = self._reserved = 0
        """The next number, and the first one that is not reserved."""
        self._reserving = trio.Lock()
        self._additions: dict[str, list[Addition]] = {}
        """That wait for their turns, by the name of the transaction."""
        self.at_once = TransactionsAtOnce(broker, self._coordinator, self)

    async def open(self) -> None:
        """Load the transactions that this broker coordinates, and carry out decisions."""
        await self._coordinator.open()

    async def run(self) -> None:
        """Abort transactions whose time is over, and log those that hang, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._coordinator.run, TTL_MS_MAX)
            nursery.start_soon(self.hanging.run)

    # -- questions ------------------------------------------------------------------------------

    def find(self, key: TransactionId) -> Transaction | None:
        return self._coordinator.find(name_of(key))

    async def all(self) -> AsyncGenerator[tuple[TransactionId, Transaction], None]:
        """All that are not ended, with rests."""
        async for found in Cooperative(list(self._coordinator.all())):
            yield id_of(found), found

    async def open_of_each(self) -> list[int]:
        """How many of each coordinator are not ended."""
        found = [0] * COORDINATORS
        async with aclosing(self.all()) as every:
            async for (number, _), _ in every:
                found[number] += 1
        return found

    def check_coordinator(self, number: int) -> None:
        """Raise `NotCoordinator` unless there is a coordinator of that number."""
        if not 0 <= number < COORDINATORS:
            raise NotCoordinator(f"there is no transaction coordinator {number}")

    def check_publish(self, key: TransactionId, topic: TopicName, owns: Owns) -> None:
        """Raise unless messages of the transaction may be published to the topic. Plain call."""
        self._check_ongoing(key, owns)
        if not self._coordinator.has_log(name_of(key), topic.full):
            raise NotAllowed(f"topic {topic} is in no transaction {shown(key)}")

    def check_acknowledge(
        self, key: TransactionId, topic: TopicName, subscription: str, owns: Owns
    ) -> None:
        """Raise unless messages may be acknowledged in it. Plain call."""
        self._check_ongoing(key, owns)
        participant = _participant(topic, subscription)
        if not self._coordinator.has_participant(name_of(key), participant):
            raise NotAllowed(f"subscription {subscription} is in no transaction {shown(key)}")

    def _check_ongoing(self, key: TransactionId, owns: Owns) -> None:
        _usable(key, self.find(key), owns)

    # -- changes --------------------------------------------------------------------------------

    async def begin(self, number: int, ttl_ms: int, owner: str) -> TransactionId:
        """Begin a transaction, and return its id."""
        key = self.begin_at_once(number, ttl_ms, owner)
        while key is None:
            await self._reserve()
            key = self.begin_at_once(number, ttl_ms, owner)
        return key

    def begin_at_once(self, number: int, ttl_ms: int, owner: str) -> TransactionId | None:
        """The same as a plain call; None if numbers have to be reserved before."""
        self.check_coordinator(number)
        if self._coordinator.open_size >= OPEN_MAX:
            raise Overloaded(f"{OPEN_MAX} transactions are open")
        if self._next == self._reserved:
            return None
        key = number, self._next
        self._next += 1
        now_ms = self._broker.clock.wall_ms()
        begun = Transaction(
            name_of(key),
            writer=key[1],
            epoch=0,
            timeout_ms=min(ttl_ms, TTL_MS_MAX),
            state=TransactionState.ONGOING,
            began_ms=now_ms,
            owner=owner,
        )
        self._coordinator.begin(begun)
        self.counts[number].begun += 1
        return key

    async def _reserve(self) -> None:
        async with self._reserving:
            if self._next == self._reserved:  # else another one has done it meanwhile
                self._next = NUMBERS_AT_ONCE * await self._broker.metadata.next(NUMBERS)
                self._reserved = self._next + NUMBERS_AT_ONCE

    async def add_topics(self, key: TransactionId, topics: Collection[str], owns: Owns) -> None:
        """Let messages be published to these topics."""
        names = _parsed_names(topics)
        _usable(key, self.find(key), owns)
        for name in names.values():
            await self._prepare(name)
        await self.extend(key, owns, _of_topics(names))

    def topics_added(self, topics: Collection[str]) -> Addition | None:
        """The same as an addition, if all of these topics have noted that they have transactions;
        raises if one may have no more.
        """
        names = _parsed_names(topics)
        for name in names.values():
            stored = self._stored_topic(name.full)
            if stored is None or not stored.transactions.present:
                return None
            stored.check_may_have_transactions()
        return _of_topics(names)

    async def _prepare(self, name: TopicName) -> None:
        """Have the log note that it has transactions, before the first entry of one; raises if it
        may have no more.
        """
        try:
            topic = (await self._broker.topic(name, create=False)).stored
        except TopicNotFound:
            return  # nothing can be published to it, until it is there and added again
        if topic is not None:
            await topic.begin_transactions()

    async def add_subscriptions(
        self, key: TransactionId, subscriptions: Collection[tuple[str, str]], owns: Owns
    ) -> None:
        """Let messages be acknowledged in these subscriptions, each given after its topic."""
        await self.extend(key, owns, self.subscriptions_added(subscriptions))

    def subscriptions_added(self, subscriptions: Collection[tuple[str, str]]) -> Addition:
        """The same as an addition."""
        check_count(len(subscriptions))
        names = {text: TopicName.parse(text) for text, _ in subscriptions}
        participants = [_participant(names[text], name) for text, name in subscriptions]
        return Addition([], participants, _spelled(names))

    async def extend(self, key: TransactionId, owns: Owns, added: Addition) -> None:
        """Add to a transaction. Clients ask for topics and subscriptions at the same time: whoever
        has the turn stores what all have asked for who wait for theirs, and who come in the same
        turn of the loop.
        """
        _usable(key, self.find(key), owns)
        coordinator, name = self._coordinator, name_of(key)
        waiting = self._additions.setdefault(name, [])
        waiting.append(added)
        try:
            async with coordinator.alone_with(name, settled=False) as slot:
                if added not in waiting:
                    return
                await trio.lowlevel.checkpoint()
                found = _usable(key, slot.transaction, owns)
                if added.is_in(slot):
                    return
                joined, taken = self.checked(found, added), [added]
                for other in waiting:
                    if other is not added:
                        with suppress(NotAllowed, Overloaded):  # it hears that in its own turn
                            joined = self.checked(found, joined.joined(other))
                            taken.append(other)
                await coordinator.extend(
                    slot,
                    logs=joined.logs,
                    participants=joined.participants,
                    spellings=joined.spellings,
                )
                waiting[:] = [each for each in waiting if each not in taken]
        finally:
            if added in waiting:
                waiting.remove(added)
            if not waiting and self._additions.get(name) is waiting:
                del self._additions[name]

    async def extend_in_turn(self, slot: TransactionSlot, added: Addition) -> None:
        """Add to a transaction whose turn has been taken, by who may use it."""
        await self._coordinator.make_ready(slot)
        found = _usable(id_named(slot.name), slot.transaction, lambda owner: True)
        if not added.is_in(slot):
            self.checked(found, added)
            await self._coordinator.extend(
                slot,
                logs=added.logs,
                participants=added.participants,
                spellings=added.spellings,
            )

    def checked(self, found: Transaction, added: Addition) -> Addition:
        """The addition, if the transaction may have it; else raises."""
        logs, participants, spellings = added.logs, added.participants, added.spellings
        check_count(len(found.logs) + len(found.participants) + len(logs) + len(participants))
        before = found.logs, found.participants, found.spellings
        if _stored_bytes(*before, logs, participants, spellings) > NAMES_BYTES_MAX:
            raise NotAllowed("the topics and subscriptions of the transaction have too long names")
        more = sum(map(bytes_of_names, (logs, participants, spellings, spellings.values())))
        if self._coordinator.names_bytes + more > ALL_NAMES_BYTES_MAX:
            raise Overloaded("open transactions have too many topics and subscriptions")
        return added

    async def end(
        self,
        key: TransactionId,
        owns: Owns,
        *,
        commit: bool,
        decided: Callable[[], object] | None = None,
    ) -> None:
        """Commit or abort; returns when consumers of every topic and subscription see the outcome.
        `decided` is called before that, as soon as the decision is stored.

        `NotReady` if they do not after `END_SECONDS_MAX`: it is carried out later.
        """
        wanted = TransactionState.COMMITTING if commit else TransactionState.ABORTING
        coordinator = self._coordinator
        async with coordinator.alone_with(name_of(key), settled=False) as slot:
            found = _owned(key, slot.transaction, owns)
            if slot.begun is not None:
                coordinator.drop(slot, commit=commit)
            elif found.state is TransactionState.ONGOING:
                await coordinator.decide(slot, commit=commit)
            elif found.state is not wanted:
                raise _decided(key, found)
        if decided is not None:
            decided()
        await self.until_seen(key, slot, found.state if found.decided else wanted)

    async def until_seen(
        self, key: TransactionId, slot: TransactionSlot, outcome: TransactionState
    ) -> None:
        """Wait until everybody sees an outcome."""
        if not slot.seen.is_set():
            with trio.move_on_after(END_SECONDS_MAX):
                await slot.seen.wait()
        if not slot.seen.is_set():
            text = f"transaction {shown(key)} is {outcome.value}, but not everywhere yet"
            raise NotReady(text)
        if slot.lost:
            raise NotCoordinator(f"another broker coordinates transaction {shown(key)}")

    def _decided(self, found: Transaction, commit: bool, timed_out: bool) -> None:
        self.counts[id_of(found)[0]].decided(commit=commit, timed_out=timed_out)

    # -- carrying out ---------------------------------------------------------------------------

    def _show(self, found: Transaction, participant: str) -> bool:
        """Have a subscription show a commit. Plain call; False if its topic is not loaded."""
        is_loaded, present = self._loaded(participant)
        if present is not None:
            present.show_end(id_of(found), committed=True)
        return is_loaded

    def _store(self, found: Transaction, participant: str, done: Done) -> None:
        """Have a subscription store what it shows; one that is deleted has nothing to do."""
        del found
        is_loaded, present = self._loaded(participant)
        if present is not None:
            present.cursor.when_saved(done)
        else:
            done(None if is_loaded else NotReady("the topic is being unloaded"))

    def _loaded(self, participant: str) -> tuple[bool, PersistentSubscription | None]:
        """Whether its topic is loaded, and the subscription if it is there."""
        topic_name, subscription = _named(participant)
        stored = self._stored_topic(topic_name)
        if stored is None:
            return False, None
        return True, stored.subscriptions.get(subscription)

    def _stored_topic(self, name: str) -> PersistentTopic | None:
        """The topic of that full name, if it is loaded and stores its messages."""
        topic = self._broker.topics.get(name)
        return None if topic is None or topic.fenced else topic.stored

    async def _settle(self, found: Transaction, participant: str) -> None:
        """Have a subscription acknowledge what the transaction holds there, or hold it no longer.
        One that is deleted has nothing to do.
        """
        name, subscription = _parsed(participant)
        try:
            topic = (await self._broker.topic(name, create=False)).stored
        except TopicNotFound:
            return
        present = None if topic is None else topic.subscriptions.get(subscription)
        if present is not None:
            committed = found.state is TransactionState.COMMITTING
            await present.end_transaction(id_of(found), committed=committed)


def check_count(names: int) -> None:
    """Raise `NotAllowed` if a transaction may not have so many topics and subscriptions."""
    if names > NAMES_MAX:
        raise NotAllowed(f"a transaction has at most {NAMES_MAX} topics and subscriptions")


def _parsed_names(topics: Collection[str]) -> dict[str, TopicName]:
    check_count(len(topics))
    return {text: TopicName.parse(text) for text in topics}


def _of_topics(names: Mapping[str, TopicName]) -> Addition:
    return Addition([name.full for name in names.values()], [], _spelled(names))


def _stored_bytes(*names: Collection[str]) -> int:
    """What names take as the record has them: JSON in UTF-8, where a letter may take six bytes."""
    return sum(map(len, map(msgspec.json.encode, names)))


def _spelled(names: Mapping[str, TopicName]) -> dict[str, str]:
    return {name.full: text for text, name in names.items() if text != name.full}


def _participant(topic: TopicName, subscription: str) -> str:
    return f"{quote(subscription, safe='')} {topic.full}"


def _named(participant: str) -> tuple[str, str]:
    subscription, _, topic = participant.partition(" ")
    return topic, unquote(subscription)


def _parsed(participant: str) -> tuple[TopicName, str]:
    topic, subscription = _named(participant)
    return TopicName.parse(topic), subscription


def subscriptions_of(found: Transaction) -> Iterator[tuple[TopicName, str]]:
    """The subscriptions in which a transaction acknowledges."""
    return map(_parsed, found.participants)


def _owned(key: TransactionId, found: Transaction | None, owns: Owns) -> Transaction:
    if found is None:
        raise TransactionNotFound(f"there is no transaction {shown(key)}")
    if not owns(found.owner):
        raise TransactionNotFound(
            f"the client is neither the owner of the transaction {shown(key)} nor a super user"
        )
    return found


def _usable(key: TransactionId, found: Transaction | None, owns: Owns) -> Transaction:
    found = _owned(key, found, owns)
    if found.state is not TransactionState.ONGOING:
        raise _decided(key, found)
    return found


def _decided(key: TransactionId, found: Transaction) -> BrokerError:
    return WrongTransactionState(f"transaction {shown(key)} is {found.state.value} already")
