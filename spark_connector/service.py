"""Asks the server where the messages of topics are: a few requests for each query.

It runs in the driver; workers ask bookies only, or with `readFrom=gateway` the server for entries.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from struct import Struct as Layout
from struct import error as LayoutError  # noqa: N812
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field

from magnetar.core.kernel.errors import Corrupted, InvalidName
from magnetar.core.kernel.names import TopicName, partition_name, partition_of
from magnetar.core.ledger.log.remaining_entries import parse_location
from magnetar.core.ledger.read.reading_plan import EntryPlace, Place, PlanRow, ReadingPlan
from magnetar.spark_connector.admin_client import AdminClient, not_ours
from magnetar.spark_connector.errors import RefusedError, ServiceError
from magnetar.spark_connector.security import NOTHING_SAID, QuerySecurity
from magnetar.spark_connector.values.topic_schema import SchemaVersion

log = logging.getLogger(__name__)

LEDGERS_AT_ONCE: Final = 10_000
NAMED_BYTES_AT_ONCE: Final = 512 * 1024
"""The names of their topics, since a server takes 1 MiB."""
NAMES_AT_ONCE: Final = 10_000
QUESTION_BYTES: Final = 900 * 1024
"""Of names and positions in a question."""
BESIDE_NAME: Final = 50
"""Bytes of a position in a question, beside its topic's name."""
CURSORS_AT_ONCE: Final = 2_000
READING: Final = "/admin/v2/reading"
PLANS_VERSION: Final = 4
"""Plans are rows, without names; what is too much for one answer is asked for again."""
BY_PARTITION: Final = 3
"""The version of servers that are asked for the ledgers of partitions by numbers."""
_ENTRY: Final = Layout(">qI").unpack_from
_ENTRY_BYTES: Final = 12


class TopicPlans(Struct, frozen=True):
    """What is known of topics."""

    topics: Mapping[str, ReadingPlan]
    missing: Sequence[str]


class _Topics(Struct, frozen=True):
    """The rows of topics and their partitions; an older server answers with `topics`."""

    partitions: Mapping[str, int]
    missing: Sequence[str]
    logs: Mapping[str, Sequence[PlanRow | None]] = {}
    topics: Mapping[str, ReadingPlan] = {}
    later: Sequence[str] = ()
    """Those that have too many partitions for this answer."""
    version: int = 0

    def checked(self) -> dict[str, ReadingPlan]:
        """The plan of each log, with names and locations that can be read."""
        for topic in (*self.logs, *self.topics):
            TopicName.parse(topic)
        plans = dict(self._plans())
        for plan in plans.values():
            for ledger in plan.ledgers:
                if ledger.kept:
                    parse_location(ledger.kept)
        return plans

    def _plans(self) -> Iterator[tuple[str, ReadingPlan]]:
        yield from self.topics.items()
        for topic, rows in self.logs.items():
            is_partitioned = topic in self.partitions
            for index, row in enumerate(rows):
                if row is not None:
                    yield partition_name(topic, index) if is_partitioned else topic, row


class _Schemas(Struct, frozen=True):
    versions: Sequence[SchemaVersion] = field(name="getSchemaResponses")


class _Positions(Struct, frozen=True):
    positions: Mapping[str, EntryPlace]


class _Ledgers(Struct, frozen=True):
    """In MessagePack; an older server answers in JSON, with bytes in base64."""

    ledgers: dict[int, bytes]
    bookies: Mapping[str, str]
    missing: Sequence[int]
    tickets: Sequence[tuple[Sequence[int], bytes]] = ()
    """For some ledgers each."""


class _Moved(Struct, frozen=True):
    missing: Sequence[str]


class LedgerFacts(Struct, frozen=True):
    """Metadata of ledgers, addresses of bookies, and what these are shown."""

    ledgers: dict[int, bytes]
    bookies: dict[str, tuple[str, int]]
    tickets: dict[int, bytes] = {}
    """By ledger; of several the same."""


class StoredEntries(Struct, frozen=True):
    """Entries by their ids; `following` is the first that was not read, `lost` why it cannot be."""

    entries: list[tuple[int, bytes]]
    following: int
    lost: str


class ReadingService:
    """See the module's docstring."""

    def __init__(
        self, urls: Sequence[str], timeout_seconds: float, security: QuerySecurity = NOTHING_SAID
    ) -> None:
        self._server = AdminClient(urls, timeout_seconds, security)
        self._partitioned: set[str] = set()
        """Topics of which the server is asked for the ledgers of partitions by numbers."""

    def topics(self, names: Sequence[str]) -> TopicPlans:
        path = f"{READING}/topics?version={PLANS_VERSION}"
        plans, missing = dict[str, ReadingPlan](), list[str]()
        for some in _named(names):
            left: Sequence[str] = some
            while left:
                found: _Topics = self._server.ask("POST", path, {"topics": left}, _Topics)
                with _understood(self._server.urls, path):
                    plans |= found.checked()
                    left = _fewer(found.later, left)
                missing += found.missing
                if found.version >= BY_PARTITION:
                    self._partitioned.update(found.partitions)
        return TopicPlans(plans, missing)

    def schemas(self, topic: str) -> Sequence[SchemaVersion]:
        """All versions of a topic's schema."""
        name = TopicName.parse(topic).base
        path = f"/admin/v2/schemas/{name.namespace}/{quote(name.local, safe='')}/schemas"
        found: _Schemas = self._server.ask("GET", path, None, _Schemas)
        return found.versions

    def topics_of(self, namespace: str) -> list[str]:
        """All topics of a namespace; of a partitioned one not the partitions."""
        try:
            named: dict[str, int] = self._server.ask(
                "GET", f"{READING}/names/{namespace}", None, dict[str, int]
            )
        except RefusedError:  # an older server does not know this, and lists partitions
            found: list[str] = self._server.ask(
                "GET", f"/admin/v2/persistent/{namespace}", None, list[str]
            )
            return found
        return list(named)

    def positions(
        self, offsets: Mapping[str, int], times: Mapping[str, int]
    ) -> dict[str, EntryPlace]:
        """The entries of messages, by their offsets or times."""
        return self._positions("offsets", offsets) | self._positions("times", times)

    def indexed(self, places: Mapping[str, Place]) -> dict[str, Place]:
        """The same places, with the offsets of their first messages."""
        entries = {log: (place.ledger_id, place.entry_id) for log, place in places.items()}
        found = self._positions("entries", entries)
        return {log: Place(at.ledger_id, at.entry_id, at.index) for log, at in found.items()}

    def _positions(self, by: str, wanted: Mapping[str, object]) -> dict[str, EntryPlace]:
        places: dict[str, EntryPlace] = {}
        for some in _named(wanted):
            body = {by: {name: wanted[name] for name in some}}
            found: _Positions = self._server.ask("POST", f"{READING}/positions", body, _Positions)
            places |= found.positions
        return places

    def ledgers(self, wanted: Mapping[str, Collection[int]]) -> LedgerFacts:
        """Of the ledgers of each log that exist."""
        found = LedgerFacts({}, {})
        for some in _portions(wanted):
            path, body = f"{READING}/ledgers", _question(some, self._partitioned)
            said: _Ledgers = self._server.ask("POST", path, body, _Ledgers)
            with _understood(self._server.urls, path):
                self._learn(found, said)
        return found

    def _learn(self, found: LedgerFacts, said: _Ledgers) -> None:
        found.ledgers.update(said.ledgers)
        for bookie, address in said.bookies.items():
            host, _, port = address.rpartition(":")
            found.bookies[bookie] = host.strip("[]"), int(port)
        for ledger_ids, ticket in said.tickets:
            found.tickets.update(dict.fromkeys(ledger_ids, ticket))

    def move_cursors(self, subscription: str, places: Mapping[str, Place]) -> None:
        """Have a subscription of this reader's follow it; on topics that are gone there is none."""
        moves = {topic: (place.ledger_id, place.entry_id) for topic, place in places.items()}
        left = iter(moves.items())
        while some := dict(islice(left, CURSORS_AT_ONCE)):
            body = {"subscription": subscription, "positions": some}
            self._server.ask("POST", f"{READING}/cursors", body, _Moved)

    def follow(self, subscription: str, places: Mapping[str, Place]) -> None:
        """The same for a batch that is done; a cursor that cannot be moved is told of only."""
        try:
            self.move_cursors(subscription, places)
        except ServiceError as error:
            log.warning("the cursor stays where it was until the next batch: %s", error)

    def entries(self, topic: str, ledger_id: int, first: int, last: int) -> StoredEntries:
        """Some entries of a ledger, from the first on."""
        path = f"{READING}/entries"
        body = {"topic": topic, "ledger": ledger_id, "first": first, "last": last}
        reply = self._server.reply("POST", path, body)
        with _understood((reply.url,), path):
            found = list(_entries(reply.body))
            following = int(reply.headers.get("magnetar-next-entry", ""))
            lost = reply.headers.get("magnetar-lost-entry", "")
            if not lost and not first < following <= last + 1:
                raise ValueError(f"entry {following} follows {first} to {last}")
            return StoredEntries(found, following, lost)

    def close(self) -> None:
        self._server.close()


@contextmanager
def _understood(urls: Sequence[str], path: str) -> Iterator[None]:
    """What cannot be understood in there was not said by a server of ours."""
    try:
        yield
    except (ValueError, LayoutError, InvalidName, Corrupted) as error:
        raise not_ours(", ".join(urls), path, error) from error


def _fewer(later: Sequence[str], asked: Sequence[str]) -> Sequence[str]:
    """What is left of a question: else it would be asked for ever."""
    if len(later) >= len(asked):
        raise ValueError(f"all of {len(asked)} topics are left for later")
    return later


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Entries and their ids, as the server has written them."""
    at = 0
    while at < len(data):
        entry_id, size = _ENTRY(data, at)
        at += _ENTRY_BYTES
        if at + size > len(data):
            raise ValueError(f"entry {entry_id} is cut off")
        yield entry_id, data[at : at + size]
        at += size


def _named(names: Iterable[str]) -> Iterator[list[str]]:
    """All of these names, not too many at once."""
    some, size = list[str](), 0
    for name in names:
        some.append(name)
        size += len(name.encode()) + BESIDE_NAME
        if len(some) == NAMES_AT_ONCE or size >= QUESTION_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _portions(wanted: Mapping[str, Collection[int]]) -> Iterator[dict[str, list[int]]]:
    """All of these ledgers, not too many at once; at least one."""
    topics: dict[str, list[int]] = {}
    number = size = 0
    for log, ledger_ids in wanted.items():
        left = list(ledger_ids)
        while left:
            some, left = left[: LEDGERS_AT_ONCE - number], left[LEDGERS_AT_ONCE - number :]
            topics[log] = some
            number += len(some)
            size += len(log.encode())
            if number == LEDGERS_AT_ONCE or size >= NAMED_BYTES_AT_ONCE:
                yield topics
                topics, number, size = {}, 0, 0
    if topics:
        yield topics


def _question(wanted: Mapping[str, Sequence[int]], partitioned: Set[str]) -> Mapping[str, object]:
    """The question for these ledgers, in which topics are named once for all their partitions."""
    topics: dict[str, Sequence[int]] = {}
    partitions: dict[str, list[tuple[int, int]]] = {}
    for log, ledger_ids in wanted.items():
        topic, index = partition_of(log)
        if index >= 0 and topic in partitioned:
            partitions.setdefault(topic, []).extend((index, each) for each in ledger_ids)
        else:
            topics[log] = ledger_ids
    return {"topics": topics, "partitions": partitions} if partitions else {"topics": topics}
