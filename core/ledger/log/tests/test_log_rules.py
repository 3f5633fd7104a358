"""What the policies of a topic decide of its log and of the cursors in it."""

import pytest

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.ledger.log.log_rules import LogRules, log_rules
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.policy.persistence import Persistence
from magnetar.core.policy.policies import Effective
from magnetar.core.policy.values import Compaction, LedgerLimits
from magnetar.core.ports.ledger_store import Quorums
from magnetar.core.testing.bench import Bench, Outcome, bench, settled

USUAL = RollLimits()


def test_without_policies_the_store_and_the_broker_decide() -> None:
    assert log_rules(USUAL, Effective()) == LogRules(USUAL)


def test_ledgers_end_as_policies_say() -> None:
    policies = Effective(
        ledger_limits=LedgerLimits(size_bytes=9), compaction=Compaction(max_lag_ms=7)
    )
    roll = log_rules(USUAL, policies).roll
    assert (roll.bytes_max, roll.age_ms_max) == (9, 7)


@pytest.mark.parametrize(
    ("rate", "pause_seconds"),
    [(-1.0, 0.0), (0.0, 0.0), (4.0, 0.25), (0.1, 10.0), (0.001, 60.0)],
)
def test_a_rate_is_a_pause_of_a_minute_at_most(rate: float, pause_seconds: float) -> None:
    rules = log_rules(USUAL, Effective(persistence=Persistence(3, 2, 1, rate)))
    assert rules == LogRules(USUAL, Quorums(3, 2, 1), pause_seconds)


async def saved(desk: Bench) -> list[Quorums | None]:
    return [desk.ledgers.ledgers[each].quorums for each in sorted(desk.ledgers.ledgers)]


async def test_new_ledgers_have_the_quorums_of_the_policy_and_older_ones_stay() -> None:
    async with bench(USUAL) as desk:
        topic = await desk.topic()
        await desk.published(topic, b"x")
        topic.set_policies(Effective(persistence=Persistence(3, 2, 2)))
        await desk.published(topic, b"x")
        assert await saved(desk) == [None]
        await topic.ledger.roll()
        await desk.published(topic, b"x")
        subscription = await topic.subscription("s", start=(-1, -1))
        subscription.cursor.ack_range(0, 0, 0)
        await subscription.cursor.saved()
        assert await saved(desk) == [None, Quorums(3, 2, 2), Quorums(3, 2, 2)]
        topic.set_policies(Effective())
        await topic.ledger.roll()
        await desk.published(topic, b"x")
        assert (await saved(desk))[-1] is None


async def test_too_few_bookies_fail_what_is_sent_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with bench(USUAL) as desk:
        topic = await desk.topic(persistence=Persistence(3, 3, 2))
        desk.ledgers.bookies = 2
        outcome = Outcome()
        topic.publish([b"lost"], None, outcome)
        await settled()
        assert isinstance(outcome.result, StorageFailed)
        assert "cannot open a ledger: a ledger needs 3 bookies, and 2 take writes" in caplog.text
        with pytest.raises(Exception, match="fewer than 3 bookies take writes"):
            topic.check_producer()
        topic.set_policies(Effective(persistence=Persistence(2, 2, 2)))
        topic.check_producer()
        await desk.published(topic, b"kept")
        assert topic.ledger.chain.entries == 1
        topic.set_policies(Effective(persistence=Persistence(3, 3, 2)))
        topic.check_producer()
        await desk.published(topic, b"what is open goes on")
