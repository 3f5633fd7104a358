"""Rows as numbers: what they say, which logs have them, and that the compiled text is the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.ledger.log.change_notice import COUNTED, KEPT, MARKED
from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.ledger.log.row_numbers import (
    LAYOUT,
    ROW_SIZE,
    ledger_of,
    note_end,
    py_rows_text,
    rows_text,
)
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.testing.bench import bench, stored

NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.lists(
    st.tuples(st.sampled_from([KEPT, MARKED, COUNTED]), st.tuples(*[NUMBER] * 6), st.binary())
)


@given(ROWS)
def test_the_compiled_text_is_the_same(rows: list[tuple[int, tuple[int, ...], bytes]]) -> None:
    marks = bytearray(mark for mark, _, _ in rows)
    numbers = bytearray(b"".join(LAYOUT.pack(*each) for _, each, _ in rows))
    texts = [text for _, _, text in rows]
    assert rows_text(texts, marks, numbers) == py_rows_text(texts, marks, numbers)


@pytest.mark.skipif(rows_text is py_rows_text, reason="not compiled")
def test_each_row_needs_its_mark_and_its_numbers() -> None:
    for marks, numbers in ((b"\2", b""), (b"", bytes(ROW_SIZE)), (b"\0\0", bytes(2 * ROW_SIZE))):
        with pytest.raises(ValueError, match="each row has"):
            rows_text([b"a"], bytearray(marks), bytearray(numbers))
    with pytest.raises(TypeError):
        rows_text(["a"], bytearray(1), bytearray(ROW_SIZE))  # type: ignore[list-item]


async def test_the_numbers_of_a_log_say_its_row() -> None:
    async with bench(RollLimits()) as made:
        ledger, marks, numbers = await made.ledger(), bytearray(2), bytearray(2 * ROW_SIZE)
        ledger.notice.ask(marks, numbers, 1, MARKED)
        for payload in (b"a", b"bc"):
            await stored(ledger, payload)
            assert marks == bytes([KEPT, COUNTED])
            row = encoded_row(ledger)
            assert py_rows_text([b"", b""], marks, numbers) == b"," + row
        assert ledger_of(numbers, 1) == ledger.chain.confirmed[0]
        assert not any(numbers[:ROW_SIZE]), "of another row"


async def test_what_numbers_do_not_say_stays_marked() -> None:
    async with bench(RollLimits()) as made:
        ledger, marks, numbers = await made.ledger(), bytearray(1), bytearray(ROW_SIZE)
        ledger.notice.ask(marks, numbers, 0, MARKED)

        def is_counted() -> bool:
            marks[0] = MARKED
            note_end(ledger.notice, ledger.chain, ledger.transactions, ledger.confirmed_index)
            return marks[0] == COUNTED

        assert not is_counted(), "it has no ledger yet"
        await stored(ledger, b"a")
        assert is_counted()
        ledger.transactions.wrote(7, 1, (0, 1), 0)  # type: ignore[arg-type]
        assert not is_counted()
        ledger.transactions.ended(7, 1, committed=True)  # type: ignore[arg-type]
        assert is_counted()
        await ledger.roll()
        assert not is_counted(), "its ledger is sealed"
        await stored(ledger, b"b")
        assert not is_counted(), "it has two"
        await ledger.trim([ledger.chain.segments[0].ledger_id])
        assert is_counted()
        marks.clear()
        note_end(ledger.notice, ledger.chain, ledger.transactions, ledger.confirmed_index)
        assert not marks, "they are not kept any more"
