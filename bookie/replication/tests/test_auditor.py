"""When an auditor audits: nothing here but metadata and a clock that jumps."""

import pytest
import trio
from msgspec.structs import replace

from magnetar.bookie.client.quorum.ensemble_adds import ClientServices
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.cluster.bookies import Bookies
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.cluster.under_replication import UnderReplication
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.replication.auditor import Auditor
from magnetar.bookie.replication.audits import Audits
from magnetar.bookie.replication.settings import DAY_SECONDS, RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import remove


class LoopClock:
    """The wall clock of the loop's time."""

    def wall_ms(self):
        return 1_700_000_000_000 + int(trio.current_time() * 1000)


class Audited:
    """A cluster of metadata only, with ledger 7 on the bookies a, b and c, and its auditor."""

    async def prepare(self, nursery, settings):
        self.store = MemoryMetadata()
        cluster = await initialize_cluster(self.store, "one")
        for name in "abcd":
            await self.come(name)
        self.marks = UnderReplication(self.store, cluster)
        ledgers = ClusterLedgers(self.store, cluster)
        fresh = ledger_metadata.fresh(("a:1", "b:1", "c:1"), (3, 2), {}, 1, 1)
        fresh.state = ledger_metadata.CLOSED  # without an entry: nobody is asked for one
        await ledgers.create(7, fresh)
        bookies = Bookies(self.store, cluster, lambda: self.auditor.changed())
        client = ClusterClient(ClientServices(None, None, None, 0), bookies, ledgers, None)
        self.counters = ReplicationCounters()
        clock = LoopClock()
        audits = Audits(client, self.marks, clock, self.counters, RecoverySettings())
        self.auditor = Auditor(client, self.marks, audits, clock, settings)
        await nursery.start(bookies.run)

    async def come(self, name):
        await self.store.put(f"/ledgers/available/{name}:1", b"", ABSENT)

    async def leave(self, name):
        await remove(self.store, f"/ledgers/available/{name}:1")

    async def missing(self):
        """What the auditor has found to lack, after a moment."""
        await trio.testing.wait_all_tasks_blocked()
        found = await self.marks.marked(7)
        return () if found is None else found[0].missing


@pytest.fixture
def start(nursery):
    async def start(delay=0, away=(), **more):
        audited = Audited()
        settings = RecoverySettings(
            lost_bookie_recovery_delay_seconds=delay, check_all_ledgers_seconds=0
        )
        await audited.prepare(nursery, replace(settings, **more))
        for name in away:
            await audited.leave(name)
        nursery.start_soon(audited.auditor.run)
        return audited

    return start


async def test_a_bookie_that_leaves_is_missed_at_once(autojump_clock, start):
    audited = await start()
    assert await audited.missing() == ()
    await audited.leave("a")
    assert await audited.missing() == ("a:1",)


async def test_a_bookie_that_was_away_before_is_missed_by_the_first_audit(autojump_clock, start):
    audited = await start(delay=100, away="b")
    assert await audited.missing() == ("b:1",)


async def test_with_a_delay_a_bookie_may_come_back(autojump_clock, start):
    audited = await start(delay=100)
    await audited.missing()
    await audited.leave("a")
    await trio.sleep(90)
    assert await audited.missing() == ()
    await audited.come("a")
    await trio.sleep(90)
    assert await audited.missing() == ()
    await audited.leave("a")
    await trio.sleep(99)
    assert await audited.missing() == ()
    await trio.sleep(2)
    assert await audited.missing() == ("a:1",)


async def test_two_that_are_away_are_not_waited_for(autojump_clock, start):
    audited = await start(delay=100)
    await audited.missing()
    await audited.leave("a")
    await trio.sleep(10)
    assert await audited.missing() == ()
    await audited.leave("b")
    assert await audited.missing() == ("a:1", "b:1")


async def test_read_only_bookies_are_there(autojump_clock, start):
    audited = await start()
    await audited.missing()
    await audited.store.put("/ledgers/available/readonly/a:1", b"", ABSENT)
    await audited.leave("a")
    assert await audited.missing() == ()


async def test_the_delay_of_the_metadata_is_the_one_that_holds(autojump_clock, start):
    audited = await start(delay=100)
    await audited.missing()
    assert await audited.marks.delay() == (100, 0)
    await audited.marks.set_delay(10)
    await audited.leave("a")
    await trio.sleep(9)
    assert await audited.missing() == ()
    await trio.sleep(2)
    assert await audited.missing() == ("a:1",)


async def test_a_delay_that_changes_holds_for_the_bookie_that_is_away(autojump_clock, start):
    audited = await start(delay=100)
    await audited.missing()
    await audited.leave("a")
    await trio.sleep(50)
    await audited.marks.set_delay(200)
    await trio.sleep(190)
    assert await audited.missing() == ()
    await trio.sleep(20)
    assert await audited.missing() == ("a:1",)


async def test_the_same_delay_again_is_a_request(autojump_clock, start):
    """As Apache's `triggeraudit` does it."""
    audited = await start(delay=100)
    await audited.missing()
    await audited.leave("a")
    await trio.sleep(10)
    await audited.marks.set_delay(100)
    assert await audited.missing() == ("a:1",)


async def test_nothing_is_audited_while_that_is_disabled(autojump_clock, start):
    audited = await start()
    await audited.missing()
    await audited.marks.disable()
    await audited.leave("a")
    await trio.sleep(10 * DAY_SECONDS)
    assert await audited.missing() == ()
    await audited.marks.enable()
    assert await audited.missing() == ("a:1",)


async def test_bookies_are_audited_each_day(autojump_clock, start):
    audited = await start()
    await audited.missing()
    before = audited.counters.audits
    await trio.sleep(3.5 * DAY_SECONDS)
    assert audited.counters.audits - before == 3


async def test_an_audit_of_the_day_does_not_cut_a_delay_short(autojump_clock, start):
    audited = await start(delay=100)
    await audited.missing()
    await trio.sleep(DAY_SECONDS - 50)
    await audited.leave("a")
    await trio.sleep(90)
    assert await audited.missing() == ()
    await trio.sleep(20)
    assert await audited.missing() == ("a:1",)


async def test_no_bookie_at_all_is_not_believed(autojump_clock, start):
    audited = await start()
    await audited.missing()
    for name in "abcd":
        await audited.leave(name)
    await audited.missing()
    await trio.sleep(100)
    await audited.come("d")
    assert await audited.missing() == ("a:1", "b:1", "c:1")


async def test_an_audit_that_fails_is_repeated(autojump_clock, start):
    audited = await start()
    await audited.missing()
    await audited.store.put("/ledgers/00/0000/oddity", b"", ABSENT)
    await audited.leave("a")
    await trio.sleep(60)
    assert await audited.missing() == ()
    await remove(audited.store, "/ledgers/00/0000/oddity")
    await trio.sleep(6)
    assert await audited.missing() == ("a:1",)


async def test_all_ledgers_are_checked_each_week_by_the_time_in_the_metadata(autojump_clock, start):
    audited = await start(away="abc", check_all_ledgers_seconds=7 * DAY_SECONDS)
    checks = audited.counters
    await audited.missing()
    assert checks.ledgers_checked == 1, "the metadata tell of none"
    checked = await audited.marks.checked_ms()
    await trio.sleep(7 * DAY_SECONDS - 1)
    assert (await audited.marks.checked_ms(), checks.ledgers_checked) == (checked, 1)
    await trio.sleep(2)
    assert checks.ledgers_checked == 2
