"""How many rows of each log a limited batch reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def shares_of(rows: Mapping[str, int], admitted: int) -> dict[str, int]:
    """`admitted` rows, divided in proportion to what waits; what is left over goes one by one to
    the longest backlogs, so that none starves: a log that gets nothing has a longer one next time.
    """
    total = sum(rows.values())
    if not total:
        return dict.fromkeys(rows, 0)
    shares = {topic: count * admitted // total for topic, count in rows.items()}
    left = admitted - sum(shares.values())
    for topic in sorted(rows, key=lambda topic: (-rows[topic], topic)):
        if not left:
            break
        if shares[topic] < rows[topic]:
            shares[topic] += 1
            left -= 1
    return shares
