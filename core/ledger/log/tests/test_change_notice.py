"""Whatever changes a row of a log is noticed: by each function, and in every order of them."""

import ast
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from msgspec import structs

from magnetar.core.kernel.errors import BrokerError, Fenced, StorageFailed
from magnetar.core.ledger.log import planning, removal
from magnetar.core.ledger.log.change_notice import COUNTED, MARKED, ChangeNotice
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.ledger.log.remaining_entries import RemainingEntries
from magnetar.core.ledger.log.row_numbers import ROW_SIZE, py_rows_text
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.transaction_index import IndexImage, Open
from magnetar.core.testing.bench import NO_AGE, Bench, bench, settled, stored

CORE = Path(__file__).resolve().parents[3]


def test_each_change_is_told() -> None:
    notice, marks = ChangeNotice(), bytearray(b"\1\1")
    notice.changed()
    notice.ask(marks, bytearray(), 1)
    assert marks == b"\1\0"
    for _ in range(2):
        notice.changed()
        assert marks == b"\1\1"
        marks[1] = 2


def test_a_keeper_that_is_replaced_or_left_is_told() -> None:
    notice, first, second = ChangeNotice(), bytearray(1), bytearray(1)
    notice.ask(first, bytearray(), 0)
    notice.ask(second, bytearray(), 0)
    assert (first, second) == (b"\1", b"\0")
    notice.leave()
    assert second == b"\1"
    second[0] = 0
    notice.changed()
    assert second == b"\0", "nobody has asked since"


def test_a_keeper_that_is_gone_has_cut_its_marks_off() -> None:
    notice, marks = ChangeNotice(), bytearray(3)
    notice.ask(marks, bytearray(), 2, 1)
    del marks[:]
    notice.changed()
    assert (marks, notice.marks) == (b"", None)


# -- each function -------------------------------------------------------------------------------

ROW = {"segments", "begins_at", "start", "confirmed", "aborted", "open"} | {
    "entries", "size", "closed_ms", "begun_ms", "first_index", "remaining"
}  # fmt: skip
"""The fields of a log and of its segments that a row is made of, but for those of its end."""
MAKERS = {
    "ledger/log/ledger_list.py": ROW,
    "ledger/read/transaction_index.py": ROW,
    "ledger/log/managed_ledger.py": {"next_index"},
}
"""Nobody else writes them (`test_ledger_list.py`). The end moves with appends in flight, too, with
which no log is at rest: the first of them moves `next_index`."""
UNASKED = {"__init__", "open"}
"""They run before there is anything to ask for."""
IN_PLACE = {"append", "pop", "clear", "insert", "extend", "update"}


@pytest.mark.parametrize("path", MAKERS)
def test_each_function_that_changes_a_row_tells_of_it(path: str) -> None:
    found, silent = 0, []
    for node in ast.walk(ast.parse((CORE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in UNASKED:
            names = {name for each in ast.walk(node) for name in _written(each)}
            if names & MAKERS[path]:
                found += 1
                if not any(map(_tells, ast.walk(node))):
                    silent.append(node.name)
    assert found
    assert not silent


def _written(node: ast.AST) -> set[str]:
    """The attributes that are assigned to, or whose values are changed in place."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func.value] if node.func.attr in IN_PLACE else []
    parts = [p for one in targets for p in (one.elts if isinstance(one, ast.Tuple) else [one])]
    bare = [part.value if isinstance(part, ast.Subscript) else part for part in parts]
    return {part.attr for part in bare if isinstance(part, ast.Attribute)}


def _tells(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "changed"
        and ast.unparse(node.func.value).endswith("notice")
    )


def test_a_row_is_made_of_nothing_else() -> None:
    """Whoever adds to a row finds who changes that, and has them tell."""
    tree = ast.parse(Path(planning.__file__).with_suffix(".py").read_text(encoding="utf-8"))
    makers = ("rows_of", "_ledger_row")
    made = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in makers]
    assert len(made) == len(makers)
    read = {
        each.attr for one in made for each in ast.walk(one) if isinstance(each, ast.Attribute)
    } - {"append"}
    assert read == {
        *("chain", "segments", "confirmed", "after", "first", "first_index", "last_entry_of"),
        *("ledger_id", "size", "closed_ms", "begun_ms", "remaining", "location"),
        *("confirmed_index", "transactions", "oldest", "position", "aborted"),
    }


# -- in every order ------------------------------------------------------------------------------


class Scene:
    """A log whose row is kept while it is at rest, or what its numbers say."""

    def __init__(
        self, made: Bench, ledger: ManagedLedger, nursery: trio.Nursery, chance: random.Random
    ) -> None:
        self.made, self.ledger, self.nursery, self.chance = made, ledger, nursery, chance
        self.marks, self.numbers, self.row = bytearray(b"\1"), bytearray(ROW_SIZE), b""
        self.counted = 0
        ledger.notice.ask(self.marks, self.numbers, 0, MARKED)

    def look(self) -> None:
        """The row is the one that is kept, or its mark is set. A log at rest has it kept."""
        row = encoded_row(self.ledger)
        if self.marks[0] == MARKED:
            self.row = row
            if self.ledger.at_rest and self.chance.random() < 0.5:
                self.ledger.notice.ask(self.marks, self.numbers, 0)
        self.counted += self.marks[0] == COUNTED
        assert row == py_rows_text([self.row], self.marks, self.numbers)

    def begins(self, work: Callable[[], Awaitable[object]]) -> None:
        """Start what may wait for later steps."""
        self.nursery.start_soon(self._works, work)

    async def _works(self, work: Callable[[], Awaitable[object]]) -> None:
        with suppress(BrokerError):
            await work()

    def ended(self) -> list[int]:
        return [one.ledger_id for one in self.ledger.chain.segments if one.closed_ms]

    # -- steps --

    def append(self) -> None:
        self.ledger.append([b"a", b"b"], [1, 2], lambda _result: None)

    def sync(self) -> None:
        self.made.ledgers.sync()

    def fail(self) -> None:
        for one in self.made.ledgers.ledgers.values():
            one.fail(StorageFailed("lost"))

    def recover(self) -> None:
        for number in list(self.made.ledgers.ledgers):
            self.begins(lambda number=number: self.made.ledgers.open(number, recover=True))

    def refuse(self) -> None:
        at_once = self.made.ledgers
        at_once.create_failure = None if at_once.create_failure else StorageFailed("no")

    def roll(self) -> None:
        self.begins(self.ledger.roll)

    def age(self) -> None:
        self.made.clock.forward(1e6)
        self.begins(self.ledger.roll_if_old)

    def trim(self) -> None:
        self.begins(lambda: self.ledger.trim(self.ended()[:1]))

    def cut(self) -> None:
        chain, index = self.ledger.chain, self.ledger.confirmed_index
        self.begins(lambda: self.ledger.cut(index, chain.after(chain.confirmed)))

    def compact(self) -> None:
        ended = self.ended()[:1]
        self.begins(lambda: removal.replace(self.ledger, dict.fromkeys(ended), 1, lambda: None))

    def thin(self) -> None:
        found = [one for one in self.ledger.chain.segments if one.closed_ms and one.entries][:1]
        left = RemainingEntries(99, 5, [0])
        instead = {one.ledger_id: structs.replace(one, remaining=left) for one in found}
        self.begins(lambda: removal.replace(self.ledger, instead, 1, lambda: None))

    def property(self) -> None:
        self.begins(lambda: self.ledger.set_property("a", "b"))

    def begin_transaction(self) -> None:
        self.ledger.transactions.wrote(7, self.ledger.confirmed_index, (0, 1), 0)

    def abort(self) -> None:
        self.ledger.transactions.ended(7, self.ledger.confirmed_index, committed=False)

    def forget(self) -> None:
        self.ledger.transactions.forget_before(self.ledger.confirmed_index + 1)

    def restore(self) -> None:
        self.ledger.transactions.restore(IndexImage([(8, Open(1, (0, 1), 0))], []), 0)

    def terminate(self) -> None:
        self.begins(self.ledger.terminate)

    def fence(self) -> None:
        self.ledger.fence(Fenced("another owner"))

    def close(self) -> None:
        self.begins(self.ledger.close)

    def delete(self) -> None:
        self.begins(self.ledger.delete)


USUAL = [
    *("append", "sync", "fail", "recover", "refuse", "roll", "age", "trim", "cut", "compact"),
    *("thin", "property", "begin_transaction", "abort", "forget", "restore"),
]
LAST = ["terminate", "fence", "close", "delete"]


@pytest.mark.parametrize("seed", range(24))
async def test_a_row_that_is_kept_is_the_one_that_would_be_made(seed: int) -> None:
    chance = random.Random(seed)
    steps = chance.choices([*USUAL, *["append", "sync"] * 3], k=60)
    await _played([*steps, LAST[seed % len(LAST)], "sync", "append"], chance)


async def test_a_log_that_only_grows_is_counted() -> None:
    grows = ["append", "append", "sync", "append", "sync"] * 5
    assert await _played(grows, random.Random(1), RollLimits()) > 25
    with_transaction = ["begin_transaction", *grows]
    assert await _played(with_transaction, random.Random(1), RollLimits()) == 0


async def _played(steps: list[str], chance: random.Random, roll: RollLimits = NO_AGE) -> int:
    """Returns how often the row was what its numbers say."""
    async with bench(roll, sync_at_once=False) as made, trio.open_nursery() as nursery:
        scene = Scene(made, await made.ledger(), nursery, chance)
        for step in steps:
            scene.look()
            getattr(scene, step)()
            scene.look()
            await settled()
            scene.look()
        made.ledgers.create_failure = None
        made.ledgers.sync()
        await settled()
        nursery.cancel_scope.cancel()
    return scene.counted


async def test_a_log_that_is_closed_is_not_at_rest() -> None:
    async with bench() as made:
        ledger, marks = await made.ledger(), bytearray(1)
        await stored(ledger, b"a")
        assert ledger.at_rest
        ledger.notice.ask(marks, bytearray(ROW_SIZE), 0)
        ledger.fence(Fenced("another owner"))
        assert marks == b"\1"
        assert not ledger.at_rest
