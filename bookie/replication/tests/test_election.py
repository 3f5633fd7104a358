"""Elections of an auditor: of all votes only the lowest is one's."""

import pytest
import trio

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.bookie.replication.election import AuditorElection
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import remove

CLUSTER = BookKeeperCluster("/ledgers", HIERARCHICAL, "id")
VOTES = "/ledgers/underreplication/auditorelection"


class Voters:
    """Elections over one store, and who is an auditor."""

    def __init__(self, nursery, store):
        self._nursery = nursery
        self.store = store
        self.auditing = []

    def start(self, name):
        election = AuditorElection(self.store, CLUSTER, name)

        async def audit():
            self.auditing.append(name)
            try:
                await trio.sleep_forever()
            finally:
                self.auditing.remove(name)

        scope = trio.CancelScope()

        async def run():
            with scope:
                await election.run(audit)

        self._nursery.start_soon(run)
        return scope


@pytest.fixture
async def voters(nursery):
    return Voters(nursery, MemoryMetadata())


async def settle():
    await trio.sleep(10)


async def test_one_of_several_is_elected_and_says_so(autojump_clock, voters):
    first, _ = voters.start("a"), voters.start("b")
    await settle()
    assert len(voters.auditing) == 1
    (name,) = voters.auditing
    assert (await voters.store.get(VOTES)).value == f'bookieId: "{name}"\n'.encode()
    assert await voters.store.children(VOTES) == ["V_0000000000", "V_0000000001"]
    first.cancel()
    await settle()
    assert voters.auditing == ["b"]


async def test_one_whose_session_ends_steps_down_and_votes_again(autojump_clock, voters):
    voters.start("a")
    await settle()
    voters.store.expire()
    await trio.testing.wait_all_tasks_blocked()
    assert voters.auditing == []
    await settle()
    assert voters.auditing == ["a"]


async def test_one_whose_vote_is_deleted_steps_down(autojump_clock, voters):
    voters.start("a")
    await settle()
    await remove(voters.store, f"{VOTES}/V_0000000000")
    await trio.testing.wait_all_tasks_blocked()
    assert voters.auditing == []


async def test_it_waits_behind_apaches_vote(autojump_clock, voters):
    await voters.store.put(f"{VOTES}/V_0000000007", b'bookieId: "apache:1"\n', ABSENT)
    voters.start("a")
    await settle()
    assert voters.auditing == []
    assert await voters.store.children(VOTES) == ["V_0000000007", "V_0000000008"]
    await remove(voters.store, f"{VOTES}/V_0000000007")
    await settle()
    assert voters.auditing == ["a"]


class Silent(MemoryMetadata):
    """A store that answers nothing at first."""

    silent = True

    async def put(self, path, value, expected):
        if self.silent:
            raise StorageFailed("no answer")
        return await super().put(path, value, expected)


async def test_it_votes_again_when_the_store_answers(autojump_clock, nursery):
    voters = Voters(nursery, Silent())
    voters.start("a")
    await settle()
    assert voters.auditing == []
    voters.store.silent = False
    await settle()
    assert voters.auditing == ["a"]


class LateList(MemoryMetadata):
    """A store in which another one votes, and is elected, just before ours."""

    async def lease(self, path, value, lost):
        if not await self.children(VOTES):
            await self.put(f"{VOTES}/V_0000000012", b'bookieId: "apache:1"\n', ABSENT)
        await super().lease(path, value, lost)


async def test_a_vote_below_one_that_may_be_elected_is_withdrawn(autojump_clock, nursery):
    voters = Voters(nursery, LateList())
    voters.start("a")
    await settle()
    assert voters.auditing == []
    assert await voters.store.children(VOTES) == ["V_0000000012", "V_0000000013"]
