"""Judges what a producer and a consumer noted while the server was stopped, killed and started.

Told are: every message that was sent, when, when its receipt came and which id that gave it; every
message that came, when, and when the receipt of its acknowledgement came, where the client has such
receipts; and the outages of the server. The promises to users are checked:

- what has a receipt comes, under the id of the receipt;
- what comes twice under different ids was sent twice: it was on its way when an outage began;
- what was acknowledged with a receipt does not come again after a later outage:
  until then a second copy may have been under way before the acknowledgement was;
- where the subscription keeps order, what comes for the first time comes in order.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple


class Sent(NamedTuple):
    number: int
    at: float
    receipt_at: float
    id: str


class Got(NamedTuple):
    number: int
    id: str
    at: float
    acked_at: float
    """When the receipt of its acknowledgement came; 0 if none did."""


class Outage(NamedTuple):
    """One absence of the server: it is told to go, its process ends, it is ready again."""

    since: float
    gone: float
    until: float


def judge(
    sent: Iterable[Sent],
    got: Sequence[Got],
    outages: Sequence[Outage],
    *,
    lane: Callable[[int], Hashable] | None,
    kept: int = 0,
) -> None:
    """`lane` says which messages are in order among themselves; None: none are. `kept` is the
    number of messages that a client may hold when its connection is lost, and hand out later.
    """
    by_number = {each.number: each for each in sent}
    ids: dict[int, set[str]] = {}
    for one in got:
        ids.setdefault(one.number, set()).add(one.id)
    _nothing_lost(by_number, ids)
    _duplicates_were_resent(by_number, ids, outages)
    _acknowledged_is_over(got, outages, kept)
    if lane is not None:
        _in_order(got, lane)


def _nothing_lost(sent: dict[int, Sent], ids: dict[int, set[str]]) -> None:
    lost = sorted(number for number in sent if number not in ids)
    assert not lost, f"{len(lost)} messages with receipts never came: {lost[:20]}"
    moved = [each for each in sent.values() if each.id not in ids[each.number]]
    assert not moved, f"came under other ids than their receipts say: {moved[:5]}"


def _duplicates_were_resent(
    sent: dict[int, Sent], ids: dict[int, set[str]], outages: Sequence[Outage]
) -> None:
    for number, found in ids.items():
        if len(found) == 1:
            continue
        times = sent[number]
        on_its_way = [
            one for one in outages if times.at <= one.until and times.receipt_at >= one.since
        ]
        assert len(found) <= 1 + len(on_its_way), f"{times} came as {found}, outages {outages}"


def _acknowledged_is_over(got: Sequence[Got], outages: Sequence[Outage], kept: int) -> None:
    in_order = sorted(got, key=lambda each: each.at)
    had = set[Got]()
    for each in outages:
        had.update([one for one in in_order if one.at > each.gone][:kept])
    over: dict[str, float] = {}
    for one in got:
        if one.acked_at:
            over[one.id] = min(one.acked_at, over.get(one.id, one.acked_at))
    for one in got:
        acked_at = over.get(one.id)
        if acked_at is not None:
            since = [each for each in outages if acked_at < each.since and each.until < one.at]
            assert one in had or not since, (
                f"{one} came again: acknowledged at {acked_at}, outages {since}"
            )


def _in_order(got: Sequence[Got], lane: Callable[[int], Hashable]) -> None:
    last: dict[Hashable, int] = {}
    seen: set[int] = set()
    for one in sorted(got, key=lambda each: each.at):
        if one.number in seen:
            continue
        seen.add(one.number)
        where = lane(one.number)
        assert last.get(where, -1) < one.number, f"{one} came after {last[where]}"
        last[where] = one.number
