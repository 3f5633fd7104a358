"""The compacted ledger of a topic: which one it is, who reads it, and what replaces it.

Pulsar's compaction (PIP-14) writes the last values of a log's keys to a second ledger and leaves
the log as it is. Consumers that ask for it (`readCompacted`) read that ledger up to its horizon,
and the log from there on. The property `COMPACTED` of the log names it (Pulsar has a property of
the cursor `__compaction` for that, `CompactedTopicImpl.java` of 4.2), and the horizon is the
mark-delete position of `__compaction`, which is no cursor here, and shown as one.

States of such a ledger, each of which is what a crash leaves:

    noted as to be deleted    it is being written, or will not be used
    named by COMPACTED        it is the compacted ledger; the write that names it notes the former
                              one as to be deleted
    noted as to be deleted    it is the former one: deleted as soon as nobody reads it, or by the
                              next owner of the log

Invariants: the log names one compacted ledger at most; whoever has begun to read one may read it
to its end, unless the topic is unloaded; two owners never both replace it (`ledger_list.py`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from magnetar.core.ledger.compacted.compacted_reader import CompactedReader
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.ledger_list_record import CompactedLedger, compacted_of

if TYPE_CHECKING:
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.ledger.storage import Storage

SUBSCRIPTION: Final = "__compaction"
"""The name under which tools see the horizon."""


class CompactionState(enum.Enum):
    """The state of the last compaction, as Pulsar's tools name it."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    """It runs, or waits for another one to end."""
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


RETRY_MS: Final = 10_000
RETRY_MS_MAX: Final = 600_000
"""What has failed is not begun again by a threshold for so long; it doubles with each failure."""


class CompactionProgress:
    """What has become of compactions since the topic was loaded."""

    def __init__(self) -> None:
        self.state = CompactionState.NOT_RUN
        self.last_error = ""
        self.removed = 0
        """Messages that the last one has removed."""
        self.pause_ms = 0
        """How long the next one waits that nobody asks for."""
        self.succeeded_ms = self.failed_ms = self.duration_ms = 0

    def begin(self) -> None:
        self.state = CompactionState.RUNNING

    def may_begin(self, now_ms: int) -> bool:
        """Whether one may begin that nobody asks for."""
        is_running = self.state is CompactionState.RUNNING
        return not is_running and now_ms - self.failed_ms >= self.pause_ms

    def end(self, failure: str, removed: int, began_ms: int, now_ms: int) -> None:
        """The compaction has ended, with a reason if it has failed."""
        self.last_error = failure
        self.duration_ms = now_ms - began_ms
        if failure:
            self.state, self.failed_ms = CompactionState.ERROR, now_ms
            self.pause_ms = min(2 * self.pause_ms or RETRY_MS, RETRY_MS_MAX)
        else:
            self.pause_ms = 0
            self.state, self.succeeded_ms, self.removed = CompactionState.SUCCESS, now_ms, removed


class CompactedTopic:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self.progress = CompactionProgress()
        self._storage = storage
        self._ledger = ledger
        self._open: dict[int, CompactedReader] = {}
        """Those that somebody reads."""
        self._retired: set[int] = set()
        """Former ones among them."""

    @property
    def current(self) -> CompactedLedger | None:
        """The compacted ledger; None if the topic was never compacted in that way."""
        return compacted_of(self._ledger.properties)

    @property
    def horizon(self) -> Position:
        """Everything in the log up to here has been compacted."""
        current = self.current
        return START if current is None else current.horizon

    # -- reading ------------------------------------------------------------------------------

    def use(self, about: CompactedLedger) -> CompactedReader:
        """A reader, which is not deleted before `leave`. Plain call."""
        reader = self._open.get(about.ledger_id)
        if reader is None:
            storage, ledger = self._storage, self._ledger
            skips = storage.skips_lost
            reader = CompactedReader(storage.ledgers, ledger.name, about, skips_lost=skips)
            if about.ledger_id >= 0:
                self._open[about.ledger_id] = reader
        reader.users += 1
        return reader

    def leave(self, reader: CompactedReader) -> None:
        """A user needs the reader no longer. Plain call."""
        reader.users -= 1
        ledger_id = reader.about.ledger_id
        if reader.users or self._open.get(ledger_id) is not reader:
            return
        del self._open[ledger_id]
        if ledger_id in self._retired:
            self._retired.discard(ledger_id)
            self._storage.spawn(self._delete, ledger_id)

    # -- replacing ----------------------------------------------------------------------------

    async def replace(self, new: CompactedLedger, former: CompactedLedger | None) -> None:
        """Have the topic read another one from now on, which was made of the former one: `Conflict`
        if that is not the compacted ledger any more.
        """
        await self._ledger.ledgers.set_compacted(new, former)
        await self._retire(former)

    async def forget(self) -> None:
        """Have the topic as if it had never been compacted."""
        await self._retire(await self._ledger.ledgers.forget_compacted())

    async def _retire(self, former: CompactedLedger | None) -> None:
        """Delete one that nothing names any more, when nobody reads it."""
        if former is None or former.ledger_id < 0:
            return
        if former.ledger_id in self._open:
            self._retired.add(former.ledger_id)
        else:
            await self._delete(former.ledger_id)

    async def _delete(self, ledger_id: int) -> None:
        if not self._ledger.fenced:
            await self._ledger.delete_ledgers([ledger_id])
            await self._ledger.ledgers.spare([ledger_id])
