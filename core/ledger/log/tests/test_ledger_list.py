"""The list of ledgers: one change at a time, stored or undone, by one owner and one class."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from magnetar.core.kernel.errors import Fenced, StorageFailed
from magnetar.core.ledger import formats
from magnetar.core.ledger.log.chain import Position, Segment
from magnetar.core.ledger.log.ledger_list import CLEAN_TO, CREATED, LedgerList
from magnetar.core.ledger.log.ledger_list_record import COMPACTED, CompactedLedger, doomed_of
from magnetar.core.testing.bench import NAME, Bench, settled

CORE = Path(__file__).resolve().parents[3]
Change = Callable[[LedgerList], Awaitable[object]]


class Owner:
    """A list, and what its owner hears."""

    def __init__(self, desk: Bench) -> None:
        self.next_index = 12
        self.lost: list[Fenced] = []
        self.list = LedgerList(desk.storage, NAME, lambda: self.next_index, self.lost.append)


async def owner_of(desk: Bench) -> Owner:
    owner = Owner(desk)
    await owner.list.open()
    return owner


async def filled(desk: Bench) -> Owner:
    """Three ledgers that have ended, with four messages each, and one that is doomed."""
    owner = await owner_of(desk)
    for place in range(3):
        writer = await desk.ledgers.create({})
        segment = Segment(writer.ledger_id, 4 * place, entries=4, size=4, closed_ms=1)
        writer.append([b"x"] * 4, lambda _error: None)
        await owner.list.add(segment)
        await settled()
        await writer.close()
    owner.list.chain.confirmed = (2, 3)
    await owner.list.doom(99)
    await owner.list.set_property("mine", "1")
    return owner


def state(of: LedgerList) -> Any:
    """All that is stored."""
    chain = of.chain
    ledgers = [(one.ledger_id, one.first_index, one.entries) for one in chain.segments]
    own = {key: value for key, value in of.properties.items() if not key.startswith("magnetar.")}
    clean_to = of.properties.get(CLEAN_TO)
    if COMPACTED in of.properties:
        own[COMPACTED] = of.properties[COMPACTED]
    return ledgers, chain.begins_at, chain.start, own, clean_to, of.doomed, of._terminated


def replaced() -> None:
    """Nobody wants to know."""


CHANGES: dict[str, Change] = {
    "add": lambda of: of.add(Segment(7, 12)),
    "property": lambda of: of.set_property("other", "2"),
    "property changed": lambda of: of.set_property("mine", "2"),
    "property removed": lambda of: of.set_property("mine", None),
    "terminate": lambda of: of.terminate((2, 3)),
    "remove": lambda of: of.remove([0, 1]),
    "begin at": lambda of: of.begin_at(5, (1, 1), lambda: 0),
    "doom": lambda of: of.doom(98),
    "compacted": lambda of: of.set_compacted(CompactedLedger(99, 1, 2, (1, 2), 7, 3), None),
    "replace": lambda of: of.replace({0: None, 1: Segment(1, 4, 2)}, 8, lambda: 0, replaced),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


async def fail(path: str, value: bytes, expected: int) -> int:
    raise StorageFailed("no")


@each_change
async def test_a_change_that_cannot_be_stored_has_not_happened(
    desk: Bench, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await filled(desk)
    before, properties = state(owner.list), owner.list.properties
    with monkeypatch.context() as patched:
        patched.setattr(desk.metadata, "put", fail)
        with pytest.raises(StorageFailed):
            await change(owner.list)
    assert state(owner.list) == before
    assert owner.list.properties is properties, "whoever has it looks at the same"
    await change(owner.list)
    assert state(owner.list) != before


@each_change
async def test_a_change_shows_once_it_is_stored(
    desk: Bench, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction and Kafka's first batch act on properties that must not be taken back."""
    owner = await filled(desk)
    before, put, seen = state(owner.list), desk.metadata.put, []

    async def watched(path: str, value: bytes, expected: int) -> int:
        seen.append(state(owner.list))
        return await put(path, value, expected)

    monkeypatch.setattr(desk.metadata, "put", watched)
    await change(owner.list)
    assert seen == [before]
    assert state(owner.list) != before


@each_change
async def test_a_change_is_stored(desk: Bench, change: Change) -> None:
    owner = await filled(desk)
    before = await desk.metadata.get(owner.list.path)
    await change(owner.list)
    after = await desk.metadata.get(owner.list.path)
    assert before is not None
    assert after is not None
    assert (after.version, after.value != before.value) == (before.version + 1, True)


@each_change
async def test_of_two_owners_the_first_writer_wins(desk: Bench, change: Change) -> None:
    owner, other = await filled(desk), await owner_of(desk)
    await other.list.set_property("theirs", "1")
    stored = await desk.metadata.get(owner.list.path)
    before = state(owner.list)
    with pytest.raises(Fenced, match="another owner"):
        await change(owner.list)
    assert len(owner.lost) == 1
    assert state(owner.list) == before
    assert await desk.metadata.get(owner.list.path) == stored


@each_change
async def test_closed_it_takes_no_change(desk: Bench, change: Change) -> None:
    owner = await filled(desk)
    owner.list.close()
    with pytest.raises(Fenced, match="unloaded"):
        await change(owner.list)
    assert owner.lost == []


async def test_a_write_that_may_have_happened_is_found_out(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await filled(desk)
    put = desk.metadata.put

    async def put_and_fail(path: str, value: bytes, expected: int) -> int:
        await put(path, value, expected)
        raise StorageFailed("nobody knows")

    with monkeypatch.context() as patched:
        patched.setattr(desk.metadata, "put", put_and_fail)
        with pytest.raises(StorageFailed):
            await owner.list.set_property("other", "2")
    await owner.list.set_property("third", "3")
    assert owner.lost == []
    again = await owner_of(desk)
    assert (again.list.properties.get("other"), again.list.properties["third"]) == (None, "3")


async def test_changes_wait_for_each_other(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails does not take the next one with it."""
    owner = await filled(desk)
    put, goes_on = desk.metadata.put, trio.Event()

    async def fail_late(path: str, value: bytes, expected: int) -> int:
        monkeypatch.setattr(desk.metadata, "put", put)
        await goes_on.wait()
        raise StorageFailed("no")

    async def trim() -> None:
        with pytest.raises(StorageFailed):
            await owner.list.remove([0])

    monkeypatch.setattr(desk.metadata, "put", fail_late)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trim)
        await settled()
        nursery.start_soon(owner.list.add, Segment(7, 12))
        await settled()
        goes_on.set()
    assert [one.ledger_id for one in owner.list.chain.segments] == [0, 1, 2, 7]


async def test_the_beginning_never_goes_back(desk: Bench) -> None:
    owner = await filled(desk)

    def first_index() -> int:
        return owner.list.chain.first_index(owner.next_index)

    assert await owner.list.begin_at(9, (2, 1), first_index) == {0, 1}
    assert await owner.list.begin_at(5, (1, 1), first_index) == set()
    assert (owner.list.chain.begins_at, owner.list.chain.start) == (9, (2, 1))


async def test_what_is_removed_is_said(desk: Bench) -> None:
    owner = await filled(desk)
    assert await owner.list.remove([]) == (0, set())
    assert await owner.list.remove([0, 55]) == (1, {0})
    assert await owner.list.remove([0]) == (0, set())


async def test_a_log_that_is_deleted_names_what_it_had(desk: Bench) -> None:
    owner = await filled(desk)
    owner.list.close()
    assert await owner.list.delete() == {0, 1, 2, 99}
    assert await desk.metadata.get(owner.list.path) is None


async def test_nobody_deletes_what_another_owner_has_written(desk: Bench) -> None:
    owner, other = await filled(desk), await owner_of(desk)
    await other.list.set_property("theirs", "1")
    with pytest.raises(Fenced):
        await owner.list.delete()
    assert await desk.metadata.get(owner.list.path) is not None


async def test_what_is_doomed_stays_in_the_record_until_it_is_deleted(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the write that fences the former owner would leave it over."""
    await filled(desk)
    records, put = [], desk.metadata.put

    async def watched(path: str, value: bytes, expected: int) -> int:
        info = formats.decode_managed_ledger(value)
        records.append((doomed_of(info.properties), sorted(desk.ledgers.ledgers)))
        return await put(path, value, expected)

    writer = await desk.ledgers.create({})
    owner = await owner_of(desk)
    await owner.list.spare([99])
    await owner.list.doom(writer.ledger_id)
    monkeypatch.setattr(desk.metadata, "put", watched)
    await desk.ledger()
    assert records == [([3], [0, 1, 2, 3]), ([], [0, 1, 2])]
    await desk.ledger()
    assert len(records) == 2, "nothing is left to do"


async def test_ragged_ledgers_are_sealed_and_stored(desk: Bench) -> None:
    owner = await filled(desk)
    ragged, written = await desk.ledgers.create({}), await desk.ledgers.create({})
    ragged.append([b"x"], lambda _error: None)
    for writer in (ragged, written):
        await owner.list.add(Segment(writer.ledger_id, 12))
    await owner.list.seal_ragged(written.ledger_id, {"magnetar.latest-time": "-1"})
    again = await desk.metadata.get(owner.list.path)
    assert again is not None
    sealed, last = formats.decode_managed_ledger(again.value).ledgers[-2:]
    assert (sealed.entries, sealed.size, sealed.closed_ms > 0) == (1, 1, True)
    assert sealed.properties["magnetar.latest-time"] == "-1"
    assert last.closed_ms == 0
    assert not written.closed


async def test_opened_again_it_is_the_same(desk: Bench) -> None:
    owner = await filled(desk)
    await owner.list.begin_at(5, (1, 1), lambda: 0)
    await owner.list.terminate((2, 3))
    again = Owner(desk)
    found = await again.list.open()
    assert found is not None
    last: Position = (2, 3)
    assert (found.next_index, found.terminated, found.doomed) == (12, last, [99])
    ledgers, begins_at, start, own, clean_to, _doomed, terminated = state(again.list)
    assert (ledgers, begins_at, start) == state(owner.list)[:3]
    assert (own, clean_to, terminated) == ({"mine": "1"}, None, last)
    assert again.list.properties[CREATED] == owner.list.properties[CREATED]


# -- nobody else ---------------------------------------------------------------------------------

OF_THE_LIST = {"segments", "begins_at", "start", "confirmed", "rewritten", "properties", "doomed"}
OF_A_SEGMENT = {"entries", "size", "closed_ms", "others", "offload", "remaining", "begun_ms"}
SEGMENTS = {"segment", "one", "last"}
"""What segments are called, in this package."""
CHANGING = {"append", "remove", "pop", "clear", "insert", "extend", "update", "setdefault"}
WRITERS = {"ledger/log/ledger_list.py", "ledger/log/recovery.py"}
"""Recovery makes the segments that the list takes over."""


def test_nobody_else_writes_into_the_list() -> None:
    """No assignment to its fields, and no call that changes them, in any other module of core."""
    found = set()
    for path in CORE.rglob("*.py"):
        name = path.relative_to(CORE).as_posix()
        if "tests/" in name or "testing/" in name or name in WRITERS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            target = _written(node)
            if target is not None and _is_of_a_log(target):
                found.add(f"{name}:{target.lineno}: {ast.unparse(target)}")
    assert not found


def _written(node: ast.AST) -> ast.Attribute | None:
    """The attribute that is assigned to, or whose value is changed in place."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func.value] if node.func.attr in CHANGING else []
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            inner = part.value if isinstance(part, ast.Subscript) else part
            if isinstance(inner, ast.Attribute) and inner.attr in OF_THE_LIST | OF_A_SEGMENT:
                return inner
    return None


def _is_of_a_log(target: ast.Attribute) -> bool:
    """Not a cursor's properties, nor a field of a class that defines it itself."""
    owner = ast.unparse(target.value)
    if target.attr in OF_A_SEGMENT:
        return owner in SEGMENTS or owner.endswith("segments[-1]")
    if target.attr in ("properties", "doomed"):
        return owner.endswith("ledger")
    return owner.endswith("chain")
