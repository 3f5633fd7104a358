"""Makes rows of logs anew for `kept_rows.py`, compiled: a first query asks for ten thousand.

Plain calls, so that a row and its notice fit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from magnetar.core.ledger.log.planning import LedgerIds, encoded_rows, ledgers_of
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic

NO_LOG: Final = b"null"
NO_LEDGERS: Final[LedgerIds] = ()
MARKED: Final = 1


def open_topics(topics: Mapping[str, Topic], names: Sequence[str]) -> list[PersistentTopic | None]:
    """Those of that name that are loaded, store their messages, and are not being unloaded."""
    loaded = [topics.get(name) for name in names]
    stored = [None if topic is None else topic.stored for topic in loaded]
    return [None if topic is None or topic.fenced else topic for topic in stored]


def make_rows(
    rows: list[bytes],
    ledgers: list[LedgerIds],
    marks: bytearray,
    numbers: Sequence[int],
    topics: Sequence[PersistentTopic | None],
) -> int:
    """Make the rows of those numbers of the topics as they are now, and note their ledgers; None is
    a topic that does not exist. Returns by how many bytes the rows have grown.
    """
    logs = [topic.ledger for topic in topics if topic is not None]
    made, place, grown = encoded_rows(logs), 0, 0
    for number, topic in zip(numbers, topics, strict=True):
        marks[number] = MARKED  # whoever overtook us may have seen another topic
        row, of_row = NO_LOG, NO_LEDGERS
        if topic is not None:
            log, row = logs[place], made[place]
            place += 1
            of_row = ledgers_of(log)
            if log.at_rest and not topic.fenced:
                log.notice.ask(marks, number)
        grown += len(row) - len(rows[number])
        rows[number], ledgers[number] = row, of_row
    return grown


def stored_here(
    ledgers: Sequence[LedgerIds], first: int, asked: Sequence[tuple[int, int]]
) -> list[int]:
    """Those of the ledgers that the partitions have of which they are asked: (partition, ledger).
    `ledgers` has those of each, from partition `first` on.
    """
    return [ledger for number, ledger in asked if ledger in ledgers[number - first]]
