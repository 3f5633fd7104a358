"""Makes rows of logs anew for `kept_rows.py`, compiled: a first query asks for ten thousand.

Plain call, so that a row and its notice fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.ledger.log.planning import encoded_row
from magnetar.core.topic.persistent_topic import PersistentTopic

NO_LOG: Final = b"null"
MARKED: Final = 1


def make_rows(
    rows: list[bytes],
    marks: bytearray,
    numbers: Sequence[int],
    topics: Sequence[PersistentTopic | None],
) -> int:
    """Make the rows of those numbers of the topics as they are now; None is one that does not
    exist. Returns by how many bytes the rows have grown.
    """
    grown = 0
    for number, topic in zip(numbers, topics, strict=True):
        marks[number] = MARKED  # whoever overtook us may have seen another topic
        row = NO_LOG
        if topic is not None:
            log = topic.ledger
            row = encoded_row(log)
            if log.at_rest and not topic.fenced:
                log.notice.ask(marks, number)
        grown += len(row) - len(rows[number])
        rows[number] = row
    return grown
