"""Notices the next change of a log, for whoever keeps something that was made of it. Pure.

What a query is told of a log (`planning.py`) is worth keeping: it asks for ten thousand logs before
each of its batches, and few of them have changed since. The keeper has a mark for each log; it asks
that the next change sets it, and looks again at those that are set. So a log that nobody
asks for pays for one comparison with each of its runs.

Invariants: every change of what `planning.py` tells is noticed; a test holds that of each function
that makes one (`tests/test_change_notice.py`). There is one keeper at most, and the mark of one
that is replaced is set at that moment, so that none trusts what it does not hear of.
"""

from __future__ import annotations


class ChangeNotice:
    """See the module's docstring."""

    __slots__ = ("_number", "marks")

    def __init__(self) -> None:
        self.marks: bytearray | None = None
        """Who waits for the next change; what happens with each run looks here first."""
        self._number = 0

    def ask(self, marks: bytearray, number: int) -> None:
        """Have the next change set the mark of that number."""
        self.changed()
        marks[number] = 0
        self.marks, self._number = marks, number

    def changed(self) -> None:
        """What is told of the log is not the same any more. Plain call."""
        marks = self.marks
        if marks is not None:
            self.marks = None
            marks[self._number] = 1
