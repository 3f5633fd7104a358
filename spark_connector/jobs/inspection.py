"""What single entries are, by their headers: those that a query has no rows of, or one of which the
place is known. It runs in Spark's workers, and asks bookies only.

An entry takes indexes of its log whether it has rows or not: markers, chunks and what was aborted
count too. So the headers of consecutive entries meet; where they do not, something is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from magnetar.core.entry import header
from magnetar.core.entry.form import MarkKind
from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import BrokerError, Corrupted, EntryNotFound
from magnetar.core.ledger.read.transaction_index import Aborted, TransactionIndex
from magnetar.spark_connector.errors import RefusedError, ServiceError
from magnetar.spark_connector.planning.planner import Planner
from magnetar.spark_connector.reading.stored_ledgers import LedgerDirectory
from magnetar.spark_connector.security import NOTHING_SAID, QuerySecurity
from magnetar.spark_connector.service import LedgerFacts, ReadingService

MESSAGES: Final = "messages"
MISSING: Final = "missing"
DAMAGED: Final = "damaged"
JUMP: Final = "jump"
"""Its index is not the one that follows."""
UNREAD: Final = "unread"
"""It has messages, and the query has no rows of it."""
INCOMPLETE: Final = "incomplete"
"""The last chunk of a message without a row."""
CHUNK: Final = "chunk"
MARKER: Final = "marker"
ABORTED: Final = "aborted"
EMPTY: Final = "empty"
"""All its messages were compacted away."""
LOST: Final = (MISSING, DAMAGED, JUMP, UNREAD, INCOMPLETE)


class Stretch(Struct, frozen=True):
    """Consecutive entries of one ledger."""

    log: str
    ledger_id: int
    first: int
    last: int
    from_index: int | None = None
    """The index of the first message, if that is known."""
    to_index: int | None = None
    """The index that follows the last one."""


class EntryFinding(NamedTuple):
    """One entry, or several of one kind."""

    log: str
    ledger_id: int
    first: int
    last: int
    kind: str
    from_index: int | None
    to_index: int | None
    """The first index that is not theirs."""
    publish_ms: int
    detail: str


FINDINGS: Final = (
    "log: string, ledger_id: bigint, first: bigint, last: bigint, kind: string, "
    "from_index: bigint, to_index: bigint, publish_ms: bigint, detail: string"
)
"""The same, as Spark has it."""


class LedgerInspection:
    """Looks at stretches. It can be pickled."""

    def __init__(
        self,
        facts: LedgerFacts,
        aborted: dict[str, list[Aborted]],
        service_urls: tuple[str, ...] = (),
        timeout_seconds: float = 30.0,
        security: QuerySecurity = NOTHING_SAID,
    ) -> None:
        """With addresses of the server, entries are read from it."""
        self._facts = facts
        self._aborted = aborted
        self._service_urls = service_urls
        self._timeout_seconds = timeout_seconds
        self._security = security

    def of(self, stretch: Stretch) -> Iterator[EntryFinding]:
        """The entries in order, and what is wrong with their indexes."""
        return _checked(self._entries(stretch), stretch)

    def entry(self, log: str, ledger_id: int, entry_id: int) -> list[EntryFinding]:
        """What one entry is, as a function of Spark's."""
        return list(self._entries(Stretch(log, ledger_id, entry_id, entry_id)))

    def _entries(self, stretch: Stretch) -> Iterator[EntryFinding]:
        log, ledger_id = stretch.log, stretch.ledger_id
        if not self._service_urls and ledger_id not in self._facts.ledgers:
            text = "the ledger has been deleted"
            yield _gone(log, ledger_id, stretch.first, stretch.last, MISSING, text)
            return
        transactions = TransactionIndex()
        transactions.aborted = list(self._aborted.get(log, ()))
        following = stretch.first
        with self._directory() as directory, directory.opened(log, ledger_id) as ledger:
            while following <= stretch.last:
                try:
                    for run in ledger.read(following, stretch.last):
                        if run.first > following:  # the server passes over what is not there
                            yield _gone(log, ledger_id, following, run.first - 1, MISSING, "")
                        for entry_id, entry in enumerate(run.payloads, run.first):
                            yield _described(log, ledger_id, entry_id, entry, transactions)
                        following = run.first + len(run.payloads)
                    if following <= stretch.last:
                        yield _gone(log, ledger_id, following, stretch.last, MISSING, "")
                    return
                except (EntryNotFound, Corrupted) as error:
                    kind = MISSING if isinstance(error, EntryNotFound) else DAMAGED
                    yield _gone(log, ledger_id, following, following, kind, str(error))
                    following += 1
                except RefusedError as error:
                    yield _gone(log, ledger_id, following, stretch.last, MISSING, str(error))
                    return
                except BrokerError as error:
                    raise ServiceError(f"{log}: {error}") from error

    def _directory(self) -> LedgerDirectory:
        urls = self._service_urls
        connect = partial(ReadingService, urls, self._timeout_seconds, self._security)
        return LedgerDirectory(self._facts, connect, is_server=bool(urls))


def inspection(
    planner: Planner, ledgers: Mapping[str, set[int]], aborted: dict[str, list[Aborted]]
) -> LedgerInspection:
    """One that reads as the query of the planner does; `ledgers` are those of each log."""
    chosen = planner.options
    if chosen.from_gateway:
        facts = LedgerFacts({}, {})
        return LedgerInspection(
            facts, aborted, chosen.service_urls, chosen.timeout_seconds, chosen.security
        )
    return LedgerInspection(planner.service.ledgers(ledgers), aborted)


def _gone(log: str, ledger_id: int, first: int, last: int, kind: str, detail: str) -> EntryFinding:
    return EntryFinding(log, ledger_id, first, last, kind, None, None, 0, detail)


def _described(
    log: str, ledger_id: int, entry_id: int, entry: bytes, transactions: TransactionIndex
) -> EntryFinding:
    try:
        about = header.read(entry)
        sent = entry[about.size :]
        kind = _kind(sent, about.index, transactions)
        publish_ms = form_of(sent).publish_time(sent)
    except Corrupted as error:
        return _gone(log, ledger_id, entry_id, entry_id, DAMAGED, str(error))
    first, following = (about.first_index, about.index + 1) if about.index >= 0 else (None, None)
    return EntryFinding(log, ledger_id, entry_id, entry_id, kind, first, following, publish_ms, "")


def _kind(sent: bytes, index: int, transactions: TransactionIndex) -> str:
    form = form_of(sent)
    mark = form.transaction_mark(sent)
    if mark is not None:
        if mark.kind is not MarkKind.PART:
            return MARKER
        if transactions.hides(mark.key, index):
            return ABORTED
    chunk = form.chunk(sent)
    if chunk is not None:
        return INCOMPLETE if chunk.is_last else CHUNK
    return MESSAGES if form.messages(sent) else EMPTY


def _checked(found: Iterable[EntryFinding], stretch: Stretch) -> Iterator[EntryFinding]:
    """The same, and what is wrong with their indexes; what is missing has those that are left."""
    expected = stretch.from_index
    gone: list[EntryFinding] = []
    for one in found:
        if one.kind in (MISSING, DAMAGED):
            gone.append(one)
            continue
        if one.from_index is not None:
            yield from _between(expected, one.from_index, gone, one)
            gone = []
            expected = one.to_index
        yield one
    if gone or (expected is not None and stretch.to_index is not None):
        last = _gone(stretch.log, stretch.ledger_id, stretch.last, stretch.last, JUMP, "")
        yield from _between(expected, stretch.to_index, gone, last)


def _between(
    expected: int | None, found: int | None, gone: Sequence[EntryFinding], at: EntryFinding
) -> Iterator[EntryFinding]:
    """What is wrong between two indexes that should be one, unless entries are missing there."""
    for number, one in enumerate(gone):
        # how many messages each of several had is not known: the first one stands for all
        bounds = (expected, found) if number == 0 else (found, found)
        yield one._replace(from_index=bounds[0], to_index=bounds[1])
    if not gone and expected is not None and found is not None and expected != found:
        detail = f"its first message has the offset {found}, not {expected}"
        yield at._replace(kind=JUMP, from_index=expected, to_index=found, detail=detail)


def merged(found: Iterable[EntryFinding]) -> Iterator[EntryFinding]:
    """The same, consecutive ones of one kind as one."""
    before: EntryFinding | None = None
    for one in found:
        if before is not None and one.kind == before.kind and one.first == before.last + 1:
            to_index = before.to_index if one.to_index is None else one.to_index
            before = before._replace(last=one.last, to_index=to_index)
            continue
        if before is not None:
            yield before
        before = one
    if before is not None:
        yield before
