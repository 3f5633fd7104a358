"""Notices the changes of a log, for whoever keeps something that was made of it. Pure.

What a query is told of a log (`planning.py`) is worth keeping: it asks for ten thousand logs before
each of its batches, and few of them have changed since. The keeper has a mark for each log, which
changes set, and looks again at those that are set. A row that numbers can say is not made of the
log at all: the keeper has room for them, which the log writes (`row_numbers.py`). So a log that
nobody keeps a row of pays for one comparison with each of its runs.

Invariants: every change of what `planning.py` tells is noticed; a test holds that of each function
that makes one (`tests/test_change_notice.py`). There is one keeper at most, and the mark of one
that is replaced, or that the log leaves, is set at that moment, so that none trusts what it does
not hear of. A keeper that is gone has cut its marks off.
"""

from __future__ import annotations

from typing import Final

KEPT: Final = 0
"""The mark of a row that is the one which would be made now."""
MARKED: Final = 1
"""It is to be made anew."""
COUNTED: Final = 2
"""It is what its numbers say."""


class ChangeNotice:
    """See the module's docstring."""

    __slots__ = ("marks", "number", "numbers")

    def __init__(self) -> None:
        self.marks: bytearray | None = None
        """Those of the keeper; what happens with each run looks here first."""
        self.numbers = bytearray()
        """The keeper's room for numbers."""
        self.number = 0
        """Which of its rows is this log's."""

    def ask(self, marks: bytearray, numbers: bytearray, number: int, mark: int = KEPT) -> None:
        """Have changes set the mark of that number."""
        self.leave()
        marks[number] = mark
        self.marks, self.numbers, self.number = marks, numbers, number

    def changed(self) -> None:
        """What is told of the log is not the same any more. Plain call."""
        marks = self.marks
        if marks is None:
            return
        if self.number < len(marks):
            marks[self.number] = MARKED
        else:
            self.marks = None

    def leave(self) -> None:
        """The log is not to be told of any more. Plain call."""
        self.changed()
        self.marks, self.numbers = None, bytearray()
