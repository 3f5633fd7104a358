"""`/admin/v3/transactions`: transactions of Pulsar's clients, and what topics have of them
(`TransactionsBase.java` of 4.2).

Invariant: a transaction is shown to its owner and to superusers; to others it does not exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import Corrupted, TransactionNotFound, Unauthorized
from magnetar.core.ledger.log.chain import Position
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.transactions.topic_transactions import (
    COORDINATORS,
    TopicTransactions,
    subscriptions_of,
)
from magnetar.core.transactions.transaction import Transaction, TransactionState
from magnetar.core.transactions.transaction_id import TransactionId
from magnetar.wire.http.admin.topic_lookup import persistent, subscription_of
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, NotHere, Table, not_here

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

STATUS: Final[Mapping[TransactionState, str]] = {
    TransactionState.EMPTY: "OPEN",
    TransactionState.ONGOING: "OPEN",
    TransactionState.COMMITTING: "COMMITTING",
    TransactionState.ABORTING: "ABORTING",
    TransactionState.COMMITTED: "COMMITTED",
    TransactionState.ABORTED: "ABORTED",
}
"""The names of `TransactionState` in Pulsar (`TxnStatus.java`)."""
PART_BYTES: Final = 64 * 1024
"""Of a list of transactions, sent at a time. One that has thousands of topics takes more."""
OFF: Final = "This Broker is not configured with transactionCoordinatorEnabled=true."


def _transactions(request: AdminRequest) -> TopicTransactions:
    found = request.services.options.transactions
    if found is None:
        raise HTTPException(503, OFF)
    return found


def _shown(position: Position) -> str:
    return f"{position[0]}:{position[1]}"


def _key(request: AdminRequest) -> TransactionId:
    return request.path_count("most"), request.path_count("least")


async def _topic(request: AdminRequest) -> PersistentTopic:
    _transactions(request)
    name = request.topic
    if not name.partitioned and await request.broker.catalog.partitions(name):
        raise not_here(f"{name} is partitioned: name one of its partitions")
    return persistent(await request.broker.topic(name, create=False))


# -- transactions ------------------------------------------------------------------------------


def _owned(request: AdminRequest, key: TransactionId) -> Transaction:
    found = _transactions(request).find(key)
    if found is None or not _owns(request, found.owner):
        raise TransactionNotFound(f"there is no transaction ({key[0]},{key[1]})")
    return found


def _owns(request: AdminRequest, owner: str) -> bool:
    who = request.identity if request.original is None else request.original
    if request.services.access.judge is None or who.name == owner:
        return True
    try:
        request.check(Action.ALTER, ResourceType.SERVER, "")
    except Unauthorized:
        return False
    return True


async def metadata(request: AdminRequest) -> Json:
    key = _key(request)
    return await _metadata(request, key, _owned(request, key))


async def _metadata(request: AdminRequest, key: TransactionId, found: Transaction) -> Json:
    produced, acked = {}, dict[str, Json]()
    async for name in Cooperative(found.logs):
        produced[found.spellings.get(name, name)] = _in_buffer(request.broker.topics.get(name), key)
    async for topic, subscription in Cooperative(subscriptions_of(found)):
        loaded = request.broker.topics.get(topic.full)
        stored = None if loaded is None else loaded.stored
        present = None if stored is None else stored.subscriptions.get(subscription)
        spelled = found.spellings.get(topic.full, topic.full)
        acked.setdefault(spelled, {})[subscription] = _in_pending_ack(present, key)
    return {
        "txnId": f"({key[0]},{key[1]})",
        "openTimestamp": found.began_ms,
        "timeoutAt": found.timeout_ms,
        "status": STATUS[found.state],
        "producedPartitions": produced,
        "ackedPartitions": acked,
        "owner": found.owner,
    }


async def slow(request: AdminRequest) -> Response:
    """Those that are open for longer than so many milliseconds."""
    least_ms = request.path_count("timeout")
    coordinator = request.number("coordinatorId", -1)
    found = _slow(request, _transactions(request), least_ms, coordinator)
    return StreamingResponse(request.services.pauses.pieces(found), media_type=JSON)


async def _slow(
    request: AdminRequest, transactions: TopicTransactions, least_ms: int, coordinator: int
) -> AsyncGenerator[bytes, None]:
    """Their JSON, some at a time: it has megabytes if tens of thousands are open."""
    now_ms = request.broker.clock.wall_ms()
    yield b"{"
    part, size, separator = list[bytes](), 0, b""
    async with aclosing(transactions.all()) as every:
        async for key, found in every:
            if coordinator in (-1, key[0]) and now_ms - found.began_ms >= least_ms:
                shown = await _metadata(request, key, found)
                part.append(
                    msgspec.json.encode(f"({key[0]},{key[1]})") + b":" + msgspec.json.encode(shown)
                )
                size += len(part[-1])
            if size >= PART_BYTES:
                yield separator + b",".join(part)
                part, size, separator = [], 0, b","
    if part:
        yield separator + b",".join(part)
    yield b"}"


async def abort(request: AdminRequest) -> None:
    """Abort a transaction, whoever began it; also one that no coordinator knows any more."""
    transactions, key = _transactions(request), _key(request)
    try:
        await transactions.end(key, _everybody, commit=False)
    except (Corrupted, TransactionNotFound):
        if not await transactions.hanging.abort(key):
            raise


def _everybody(_owner: str) -> bool:
    return True


# -- coordinators ------------------------------------------------------------------------------


async def coordinators(request: AdminRequest) -> list[Json]:
    _transactions(request)
    url = request.options.broker_url or request.options.broker_url_tls
    return [{"id": number, "brokerServiceUrl": url} for number in range(COORDINATORS)]


async def coordinator_stats(request: AdminRequest) -> Json:
    transactions = _transactions(request)
    asked = request.number("coordinatorId", -1)
    if asked != -1:
        transactions.check_coordinator(asked)
    numbers: dict[int, list[int]] = defaultdict(list)
    async with aclosing(transactions.all()) as every:
        async for (coordinator, number), _ in every:
            numbers[coordinator].append(number)
    if asked != -1:
        return _coordinator(numbers[asked])
    return {str(each): _coordinator(numbers[each]) for each in range(COORDINATORS)}


def _coordinator(own: list[int]) -> Json:
    """`own` are the numbers of its transactions; below the lowest one none is open."""
    return {
        "state": "Ready",
        "lowWaterMark": min(own) - 1 if own else -1,
        "leastSigBits": max(own, default=-1),
        "ongoingTxnSize": len(own),
        "recoverStartTime": 0,
        "recoverEndTime": 0,
    }


# -- what topics have of them -------------------------------------------------------------------


def _in_buffer(topic: Any, key: TransactionId) -> Json:
    stored = None if topic is None else topic.stored
    if stored is None:
        return {"startPosition": None, "aborted": False}
    transactions = stored.ledger.transactions
    begun = transactions.open.get(key)
    return {
        "startPosition": None if begun is None else _shown(begun.position),
        "aborted": transactions.has_aborted(key),
    }


async def in_buffer(request: AdminRequest) -> Json:
    return _in_buffer(await _topic(request), _key(request))


async def buffer_stats(request: AdminRequest) -> Json:
    topic = await _topic(request)
    ledger = topic.ledger
    first = ledger.transactions.oldest
    last = ledger.chain.confirmed if first is None else first.position
    readable = last if first is None else (last[0], last[1] - 1)
    return {
        "state": "Ready" if topic.transactions.present else "NoSnapshot",
        "maxReadPosition": _shown(readable),
        "ongoingTxnSize": len(ledger.transactions.open),
        "totalAbortedTransactions": len(ledger.transactions.aborted),
        "lastSnapshotTimestamps": 0,
        "recoverStartTime": 0,
        "recoverEndTime": 0,
    }


# -- what subscriptions hold --------------------------------------------------------------------


def _in_pending_ack(subscription: PersistentSubscription | None, key: TransactionId) -> Json:
    up_to = None if subscription is None else subscription.cursor.pending.up_to(key)
    return {"cumulativeAckPosition": None if up_to is None else _shown(up_to)}


async def _subscription(request: AdminRequest) -> PersistentSubscription:
    return subscription_of(await _topic(request), request.subscription)


async def in_pending_ack(request: AdminRequest) -> Json:
    return _in_pending_ack(await _subscription(request), _key(request))


async def pending_ack_stats(request: AdminRequest) -> Json:
    pending = (await _subscription(request)).cursor.pending
    return {
        "state": "Ready" if pending else "None",
        "ongoingTxnSize": len(pending.keys),
        "recoverStartTime": 0,
        "recoverEndTime": 0,
    }


async def position_in_pending_ack(request: AdminRequest) -> Json:
    """Whether a transaction holds an entry, or a message of its batch."""
    subscription = await _subscription(request)
    position = request.path_count("ledger"), request.path_count("entry")
    batch_index = request.number("batchIndex", -1)
    cursor = subscription.cursor
    if cursor.acks.is_acked(position):
        return {"state": "MarkDelete"}
    left = cursor.pending.left_of(position, cursor.acks.bits(position))
    of_batch = batch_index >= 0 and left is not None and not left >> batch_index & 1
    held = cursor.pending.covers(position) or of_batch
    return {"state": "PendingAck" if held else "NotInPendingAck"}


TOPIC: Final = "{tenant}/{namespace}/{topic}"
ONE: Final = "{most}/{least}"
POSITION: Final = f"{TOPIC}/{{subscription}}/{{ledger}}/{{entry}}"
OTHER: Final = NotHere("transactions have no logs of their own here, and always 16 coordinators")
TABLE: Final[Table] = (
    ("GET", "/coordinators", coordinators, Needs.SUPERUSER),
    ("GET", "/coordinatorStats", coordinator_stats, Needs.SUPERUSER),
    ("GET", "/slowTransactions/{timeout}", slow, Needs.SUPERUSER),
    ("POST", f"/abortTransaction/{ONE}", abort, Needs.SUPERUSER),
    ("GET", f"/transactionMetadata/{ONE}", metadata, Needs.IDENTITY),
    ("GET", f"/transactionInBufferStats/{TOPIC}/{ONE}", in_buffer, Needs.TOPIC),
    ("GET", f"/transactionBufferStats/{TOPIC}", buffer_stats, Needs.TOPIC),
    (
        "GET",
        f"/transactionInPendingAckStats/{TOPIC}/{{subscription}}/{ONE}",
        in_pending_ack,
        Needs.CONSUMER,
    ),
    ("GET", f"/pendingAckStats/{TOPIC}/{{subscription}}", pending_ack_stats, Needs.CONSUMER),
    ("GET", f"/pendingAckStats/{POSITION}", position_in_pending_ack, Needs.CONSUMER),
    # asked by Java's admin client (4.2.4, as seen); Pulsar's documentation has the path above
    ("GET", f"/positionStatsInPendingAck/{POSITION}", position_in_pending_ack, Needs.CONSUMER),
    ("GET", "/coordinatorInternalStats/{rest:path}", OTHER, Needs.IDENTITY),
    ("GET", "/pendingAckInternalStats/{rest:path}", OTHER, Needs.IDENTITY),
    ("GET", "/transactionBufferInternalStats/{rest:path}", OTHER, Needs.IDENTITY),
    ("GET POST", "/transactionCoordinator/{rest:path}", OTHER, Needs.IDENTITY),
)
