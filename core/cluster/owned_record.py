"""A metadata record that one owner holds: its value, its version, and its owner's epoch.

Theory. The metadata store counts the writes of each path. An owner remembers the version that it
read or wrote last and writes over that version only, so of two owners that write, one wins. The
owner of a name is decided elsewhere (`ownership.py`); that decision may reach the former owner
late, or never. The version makes this harmless: the loser's write changes nothing and fails.

    state      means                                       leaves for
    UNREAD     nothing is known yet                        HELD by `load` or `claim`
    HELD       `version` is what the store had last, as    UNSURE when a write fails and may have
               far as this owner knows                     happened, FENCED when it lost the race
    UNSURE     the last write happened, or did not         HELD or FENCED by `settle`
    FENCED     another owner has written                   -

Invariants: a write is conditional on the version of the last read or write of this owner; a record
is read once, for reading again would hand the loser the winner's version, and with it the right to
write over it; FENCED is final, and fails without a call to the store. A fenced owner drops the
record; if it still owns the name, it loads a new one.

What a crash leaves. One call changes one path in one step, so the path holds the old value before
the write and the new one after it. The owner after the crash reads either; no write is acknowledged
before the store reports it durable. A failure other than a lost race (a full disk, a broken
connection: ZooKeeper's CONNECTION_LOSS) leaves it open whether the write happened: UNSURE. `settle`
reads the record: the old version means that it did not happen; the next version with the bytes of
the attempt means that it did; anything else is another owner's write. An attempt to write the bytes
that were there already proves nothing, for a claim writes just those: there the next version counts
as another owner's.

Two processes on one store:

    A reads version 3                 B claims: writes 4 with the value of 3
    A writes over 3: BadVersion       B writes over 4: 5
    A is FENCED and lets go           B goes on

`load` alone does not fence the former owner, which may still write once. That fences the new owner,
which loads again and sees the write: no update is lost, but the rightful owner has to try again.
This suffices where every action of an owner follows a write of its own (transactions, cursors). An
owner that acts on what it has read (members of a group) claims. BookKeeper and Pulsar rely on the
version alone (`MetadataUpdateLoop.java` of BookKeeper 4.17, `MetaStoreImpl.java` of Pulsar 4.2);
Kafka fences when a coordinator is loaded, by the epoch of its partition's leader.

`epoch` is the version with which an owner began. Each claim raises the version, so of two owners
that claimed, the later one has the greater epoch. No field of the value is needed, which matters
where other software defines its bytes (cursors, policies).

Left open: a path that is deleted and created again begins at version 0 again, here as in ZooKeeper
(`Stat.version`; a write cannot be conditional on `czxid`). A former owner that still holds version
n, over a deletion, a creation and n writes of others, would write over theirs. Deletions come hours
or days after the last use (a transactional id, an empty group), and a lease is lost in seconds. A
store that can check the lease and write in one step (ZooKeeper's `multi`) may close it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec
import trio

from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    BrokerError,
    Corrupted,
    Fenced,
    NotFound,
)
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore, Versioned

Value = TypeVar("Value")

CLAIMS_MAX: Final = 10
"""Attempts to claim a record that another owner writes at the same time."""


class RecordState(enum.Enum):
    UNREAD = enum.auto()
    HELD = enum.auto()
    UNSURE = enum.auto()
    FENCED = enum.auto()


class _Turn:
    """The turn to read or write a record, as a context. No generator: a record of a transaction is
    looked at a dozen times in its life.
    """

    __slots__ = ("_lock", "_record")

    def __init__(self, record: OwnedRecord[Any]) -> None:
        self._record = record
        self._lock = record._turn = record._turn or trio.Semaphore(1, max_value=1)

    async def __aenter__(self) -> None:
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._record._end_turn()


class OwnedRecord(Generic[Value]):
    """See the module's docstring. Calls of several tasks wait for each other."""

    __slots__ = (
        "_decode",
        "_encode",
        "_metadata",
        "_tried",
        "_turn",
        "epoch",
        "path",
        "state",
        "value",
        "version",
    )

    def __init__(
        self,
        metadata: MetadataStore,
        path: str,
        encode: Callable[[Value], bytes],
        decode: Callable[[bytes], Value],
    ) -> None:
        self.path = path
        self.state = RecordState.UNREAD
        self.value: Value | None = None
        """The value that this owner read or wrote last; None if there is no record."""
        self.version = self.epoch = ABSENT
        self._metadata = metadata
        self._encode = encode
        self._decode = decode
        self._tried: bytes | None = None
        """The bytes of the write that may have happened; None for a deletion."""
        self._turn: trio.Semaphore | None = None
        """Held while a task reads or writes; made on demand, because there are as many records as
        cursors, and a lock takes three times the memory of the rest."""

    def _end_turn(self) -> None:
        assert self._turn is not None, "it has been taken"
        self._turn.release()
        if self._turn.value:
            self._turn = None

    def _alone(self) -> _Turn:
        return _Turn(self)

    # -- taking it ----------------------------------------------------------------------------

    async def load(self) -> Value | None:
        """Read the record. Its former owner is fenced by the first write only."""
        async with self._alone():
            assert self.state is RecordState.UNREAD, f"{self.path} is read once"
            self._take(await self._metadata.get(self.path))
            return self.value

    async def claim(self) -> Value | None:
        """Load the record and write it again, which fences the former owner.

        A missing record cannot be claimed: of two owners that create it, the first one wins.
        """
        async with self._alone():
            assert self.state is RecordState.UNREAD, f"{self.path} is read once"
            for _ in range(CLAIMS_MAX):
                found = await self._metadata.get(self.path)
                if found is not None:
                    try:
                        with trio.CancelScope(shield=True):
                            version = await self._metadata.put(
                                self.path, found.value, found.version
                            )
                    except BadVersion:
                        continue
                    found = Versioned(found.value, version)
                self._take(found)
                return self.value
            raise Fenced(f"another owner keeps writing {self.path}")

    def _take(self, found: Versioned | None) -> None:
        if found is not None:
            self.value = self._read(found.value)
            self.version = self.epoch = found.version
        self.state = RecordState.HELD

    def _read(self, data: bytes) -> Value:
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, ValueError) as error:
            raise Corrupted(f"the record {self.path} cannot be read: {error}") from error

    async def verify(self) -> None:
        """Raise `Fenced` unless the store still has the version of this owner.

        Call it before an action elsewhere that depends on the record. The answer may be out of date
        when it arrives: the caller must know why that does no harm.
        """
        async with self._alone():
            await self._settle()
            found = await self._metadata.get(self.path)
            if (ABSENT if found is None else found.version) != self.version:
                raise self._lost()

    # -- changing it --------------------------------------------------------------------------

    def expect_none(self) -> None:
        """Nobody has had the record's name before: there is nothing to load."""
        assert self.state is RecordState.UNREAD, f"{self.path} is read already"
        self.state = RecordState.HELD

    async def create(self, value: Value) -> None:
        """Write the first version of a record, loaded or not; `Fenced` if there is one already."""
        async with self._alone():
            if self.state is RecordState.UNREAD:
                self.expect_none()
            await self._settle()
            assert self.version == ABSENT, f"{self.path} is there already"
            await self._put(value)

    async def write(self, value: Value) -> None:
        """Write the record, or create it; `Fenced` if another owner has written it.

        After any other error the write may have happened: see `settle`.
        """
        async with self._alone():
            await self._settle()
            await self._put(value)

    def write_at_once(self, value: Value, done: Callable[[BrokerError | None], None]) -> bool:
        """`write` as a plain call: `done` is called later, on the loop, with what it would raise.
        False, and nothing is written, where that takes a task.
        """
        if self._turn is not None or self.state is not RecordState.HELD:
            return False
        data = self._encode(value)
        written = partial(self._written, value, data, done)
        if not self._metadata.put_at_once(self.path, data, self.version, written):
            return False
        self._turn = trio.Semaphore(0, max_value=1)
        return True

    def _written(
        self,
        value: Value,
        data: bytes,
        done: Callable[[BrokerError | None], None],
        version: int,
        error: BrokerError | None,
    ) -> None:
        if error is None:
            self._note(value, version)
        else:
            error = self._failed(error, data)
        self._end_turn()
        done(error)

    async def delete(self) -> None:
        """Remove the record, if there is one; `Fenced` if another owner has written it."""
        async with self._alone():
            await self._settle()
            if self.version == ABSENT:
                return
            try:
                with trio.CancelScope(shield=True):
                    await self._metadata.delete(self.path, self.version)
            except NotFound:
                pass  # deleted already
            except BadVersion as error:
                raise self._lost() from error
            except BrokerError:
                self.state, self._tried = RecordState.UNSURE, None
                raise
            self.version, self.value = ABSENT, None

    async def settle(self) -> None:
        """Find out whether the last write happened, if that is unknown; `Fenced` if it is lost."""
        async with self._alone():
            await self._settle()

    async def _put(self, value: Value) -> None:
        data = self._encode(value)
        try:
            # Shielded: a cancelled call would lose the version, and with it the record.
            with trio.CancelScope(shield=True):
                version = await self._metadata.put(self.path, data, self.version)
        except BrokerError as error:
            if (failed := self._failed(error, data)) is error:
                raise
            raise failed from error
        self._note(value, version)

    def _failed(self, error: BrokerError, data: bytes) -> BrokerError:
        """What the error of a write means: the record is lost, or the write may have happened."""
        if isinstance(error, AlreadyExists | BadVersion):
            return self._lost()
        self.state, self._tried = RecordState.UNSURE, data
        return error

    def _note(self, value: Value, version: int) -> None:
        """It is written."""
        if self.version == ABSENT:
            self.epoch = version
        self.version, self.value = version, value

    def _lost(self) -> Fenced:
        self.state = RecordState.FENCED
        return Fenced(f"another owner has taken over {self.path}, ours since version {self.epoch}")

    async def _settle(self) -> None:
        assert self.state is not RecordState.UNREAD, f"{self.path} is to be loaded first"
        if self.state is RecordState.FENCED:
            raise self._lost()
        if self.state is RecordState.HELD:
            return
        found = await self._metadata.get(self.path)
        version = ABSENT if found is None else found.version
        if version != self.version:
            if (None if found is None else found.value) != self._tried:
                raise self._lost()
            if found is not None and (version != self.version + 1 or self._tried_the_same()):
                raise self._lost()
            if self.version == ABSENT:
                self.epoch = version
            self.version = version
            self.value = None if found is None else self._read(found.value)
        self.state, self._tried = RecordState.HELD, None

    def _tried_the_same(self) -> bool:
        """Whether the write that may have happened had the bytes that were there."""
        return self.value is not None and self._encode(self.value) == self._tried
