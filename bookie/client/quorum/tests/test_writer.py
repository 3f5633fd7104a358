"""The writer on three bookies: sizes, refusals, and metadata that others have changed."""

import pytest
import trio
import trio.testing

from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.client.quorum.settings import QuorumSettings
from magnetar.bookie.client.quorum.writer import PAYLOAD_BYTES_MAX
from magnetar.bookie.client.writer import RUN_BYTES_MAX
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.digests import DIGEST_TYPES
from magnetar.bookie.rpc.messages import LAST_ENTRY, Read, Status
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Fenced, Invalid, Overloaded, Unauthorized
from magnetar.core.ports.tests.contract_ledger_store import Outcome, append


async def test_entries_of_any_size(cluster):
    async with cluster.client() as store:
        writer = await store.create({})
        payloads = [
            bytes([i]) * size for i, size in enumerate((0, 1, 70_000, 3_000_000, 5, 2_000_000))
        ]
        await append(writer, *payloads)
        for payload in payloads:
            await append(writer, payload)
        outcome = Outcome()
        writer.append([b"body" * 50_000], outcome, [b"head"])
        assert await outcome.wait() == [None]
        found = []
        while len(found) < 13:
            found += await writer.read(len(found), 12, 1 << 20)
        assert found == [*payloads, *payloads, b"head" + b"body" * 50_000]
        assert writer.length == sum(map(len, found))


@pytest.mark.parametrize("write", [3, 2])
@pytest.mark.parametrize("digest", ["CRC32", "MAC", "DUMMY"])
async def test_every_digest_and_a_password(cluster, digest, write):
    """What one client has written, another one reads, and recovers, if it knows the password."""
    chosen = {"digest_type": DIGEST_TYPES[digest], "password": b"secret", "write": write}
    payloads = [bytes([i]) * i * 300 for i in range(30)]
    large = bytes(PAYLOAD_BYTES_MAX)
    async with cluster.client(**chosen, explicit_lac_seconds=0.01) as store:
        writer = await store.create({})
        outcome = Outcome()
        writer.append(payloads, outcome, [b"head"] * 30)
        await outcome.wait()
        await append(writer, large)
        expected = [*(b"head" + payload for payload in payloads), large]
        assert await all_of(writer) == expected
        async with cluster.client() as stranger:
            with pytest.raises(Unauthorized):
                await stranger.open(writer.ledger_id, recover=True)
        async with cluster.client(password=b"secret") as other:
            reader = await other.open(writer.ledger_id, recover=True)
            assert await all_of(reader) == expected
        ledger = await cluster.ledgers.read(writer.ledger_id)
        assert ledger.digestType == DIGEST_TYPES[digest]
        assert ledger.length == sum(map(len, expected))


async def all_of(reader):
    found = []
    while len(found) <= reader.last_confirmed:
        found += await reader.read(len(found), reader.last_confirmed, 1 << 20)
    return found


async def test_an_entry_may_be_too_large(cluster):
    async with cluster.client() as store:
        writer = await store.create({})
        outcome = Outcome()
        writer.append([bytes(PAYLOAD_BYTES_MAX + 1)], outcome)
        (error,) = await outcome.wait()
        assert isinstance(error, Invalid)
        both = Outcome(2)
        writer.append([bytes(PAYLOAD_BYTES_MAX + 1)], both)
        assert writer.append([b"behind it"], both) == 0
        assert [type(error) for error in await both.wait()] == [Invalid] * 2
        assert await append(writer, bytes(PAYLOAD_BYTES_MAX)) == 0
        assert await writer.read(0, 0, 1) == [bytes(PAYLOAD_BYTES_MAX)]


async def test_what_waits_is_bounded(cluster):
    async with cluster.client(unconfirmed_bytes_max=1000) as store:
        writer = await store.create({})
        assert not store.congested
        order = []
        outcome = Outcome(5)

        def note(error, i):
            order.append((i, type(error)))
            outcome(error)

        for i in range(5):
            writer.append([bytes(600)], lambda error, i=i: note(error, i))
        assert store.congested
        await outcome.wait()
        kinds = [type(None)] * 4 + [Overloaded]
        assert order == list(enumerate(kinds)), "a refusal is reported in its turn"
        assert not store.congested
        assert await append(writer, b"more") == 4, "no id was used up"


async def test_small_entries_count_with_all_that_they_take(cluster):
    async with cluster.client(unconfirmed_bytes_max=1000) as store:
        writer = await store.create({})
        outcome = Outcome()
        writer.append([b"x"] * 30, outcome)
        assert store.congested
        await outcome.wait()
        assert not store.congested


def test_appends_are_refused_before_a_bookie_is_blamed_for_all_of_them():
    quorum = QuorumSettings()
    under_way = 2 * quorum.unconfirmed_bytes_max + quorum.recovery_bytes_max + RUN_BYTES_MAX
    assert ConnectionSettings().adds_bytes_max > under_way


async def test_what_fails_is_reported_in_order_with_what_was_refused(cluster):
    async with cluster.client(unconfirmed_bytes_max=1000) as store:
        writer = await store.create({})
        order = []
        for i in range(6):
            writer.append([bytes(600)], lambda error, i=i: order.append((i, type(error))))
        await writer.close()
        await trio.testing.wait_all_tasks_blocked()
        assert order == list(enumerate([Fenced] * 4 + [Overloaded] * 2))


async def test_close_again_is_the_same_and_after_a_recovery_is_refused(cluster):
    async with cluster.client() as store, cluster.client() as other:
        writer = await store.create({})
        await append(writer, b"a")
        first = await writer.close()
        assert await writer.close() == first
        writer = await store.create({})
        await append(writer, b"a", b"b")

        def take(ledger):
            ledger.state = ledger_metadata.IN_RECOVERY
            return True

        await cluster.ledgers.change(writer.ledger_id, take)
        with pytest.raises(Fenced, match="is being recovered by another"):
            await writer.close()
        await other.open(writer.ledger_id, recover=True)
        assert (await writer.close()).last_entry_id == 1, "it was closed where this one would"


async def test_a_group_is_sent_at_its_end(cluster):
    async with cluster.client() as store:
        writer = await store.create({})
        await append(writer, b"connects")
        store.begin_group()
        outcome = Outcome()
        writer.append([b"x"], outcome)
        with trio.move_on_after(0.05):
            await outcome.wait()
        assert outcome.results == []
        store.flush_group()
        assert await outcome.wait() == [None]


async def test_what_was_read_before_a_segment_was_made_does_not_undo_it(cluster):
    await cluster.start()
    async with cluster.client() as store:
        writer = await store.create({})
        await append(writer, b"0")
        stale = await cluster.ledgers.read(writer.ledger_id)
        await cluster.bookie(writer.view.last_segment[1][0]).kill()
        await append(writer, b"1")
        await cluster.changed(writer.ledger_id)
        await append(writer, b"2")
        segment = writer.view.last_segment

        class Stale:
            async def read(self, ledger_id):
                return stale

        ledgers, writer._ledgers = writer._ledgers, Stale()
        assert not await writer._refresh()
        assert writer.view.last_segment == segment
        writer._ledgers = ledgers
        await writer.close()


async def heard(store, cluster, ledger_id, previous):
    """What each bookie knows to be confirmed once that is more than before: long polls."""
    found = []
    for bookie in cluster.bookies:
        completion = Completion()
        poll = Read(ledger_id, LAST_ENTRY, previous_lac=previous, timeout_ms=20_000, piggyback=True)
        store._services.connections.to(bookie.bookie_id, 3).ask(poll, completion.done, 20)
        found.append((await completion.result()).lac)
    return found


async def test_the_last_entry_of_an_idle_ledger_is_told(cluster):
    async with cluster.client(explicit_lac_seconds=0.01) as store:
        writer = await store.create({})
        for previous in (-1, 1):
            last = await append(writer, b"one", b"two") + 1
            found = await heard(store, cluster, writer.ledger_id, previous)
            assert found == [last] * 3


async def test_a_lac_that_bookies_did_not_take_is_told_again(cluster, monkeypatch):
    async with cluster.client() as store:
        writer = await store.create({})
        await append(writer, b"0")
        key, writer.view.master_key = writer.view.master_key, b"w" * 20
        answers, taken = trio.open_memory_channel(3)
        told = writer._lac_told

        def noted(lac, response):
            told(lac, response)
            answers.send_nowait(response)

        monkeypatch.setattr(writer, "_lac_told", noted)
        writer.tell_lac()
        for _ in range(3):
            assert (await taken.receive()).status is Status.UNAUTHORIZED
        writer.view.master_key = key
        writer.tell_lac()
        assert await heard(store, cluster, writer.ledger_id, -1) == [0] * 3
        for _ in range(3):
            assert (await taken.receive()).status is Status.OK
        writer.tell_lac()
        await append(writer, b"1")
        assert taken.statistics().current_buffer_used == 0, "they know it"
