"""Reads: from memory and disk, fences, long polls, batches, limits, clients that do not receive."""

from contextlib import AsyncExitStack

import pytest
import trio
import trio.lowlevel

from magnetar.bookie.format import availability, digests
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.tests.peers import KEY, add, entry, serving
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    BatchRead,
    EntryList,
    Lac,
    ListEntries,
    Read,
    ReadEntries,
    ReadEntry,
    ReadLac,
    Status,
)
from magnetar.core.link.limits import LinkLimits

LAST = Read(1, LAST_ENTRY)


def poll(previous, timeout_ms, *, piggyback=True, entry_id=LAST_ENTRY):
    return Read(1, entry_id, previous_lac=previous, timeout_ms=timeout_ms, piggyback=piggyback)


@pytest.mark.parametrize("version", [2, 3])
async def test_what_was_added_is_read_from_memory_and_disk(served, version):
    async with served.dial(version) as peer:
        await peer.ask(*(add(1, i, b"%d" % i, lac=i - 1) for i in range(20)))
        for _ in range(2):
            for i in (0, 7, 19):
                found = await peer.ask(Read(1, i))
                assert (found.status, found.entry_id) == (Status.OK, i)
                assert found.entry == entry(1, i, b"%d" % i, lac=i - 1)
                assert found.lac == (18 if version == 3 else None)
            assert (await peer.ask(LAST)).entry == entry(1, 19, b"19", lac=18)
            assert (await peer.ask(Read(1, 20))).status is Status.NO_ENTRY
            assert (await peer.ask(Read(2, 0))).status is Status.NO_LEDGER
            await served.checkpoint()


async def test_a_read_of_the_last_entry_says_so_in_its_response(served):
    async with served.dial() as peer:
        response = await peer.ask(add(1, 0), LAST)
        assert response == ReadEntry(Status.OK, 1, LAST_ENTRY, entry(1, 0))


@pytest.mark.parametrize("version", [2, 3])
async def test_a_fence_needs_the_key(served, version):
    async with served.dial(version) as peer:
        await peer.ask(add(1, 0))
        wrong = Read(1, LAST_ENTRY, b"w" * 20, fence=True)
        assert (await peer.ask(wrong)).status is Status.UNAUTHORIZED
        assert (await peer.ask(add(1, 1))).status is Status.OK
        fencing = Read(1, LAST_ENTRY, KEY, fence=True)
        for _ in range(2):
            response = await peer.ask(fencing)
            assert (response.status, response.entry) == (Status.OK, entry(1, 1))
            assert response.lac is None
        assert (await peer.ask(add(1, 2))).status is Status.FENCED


async def test_a_long_poll_ends_with_the_lac(served):
    async with served.dial(3) as writer, served.dial(3) as reader:
        await writer.ask(add(1, 0))
        await reader.say(poll(-1, 60_000))
        await writer.ask(add(1, 1, lac=-1))
        with trio.move_on_after(0.1):
            pytest.fail(str(await reader.hear()))
        await writer.ask(add(1, 2, b"y", lac=1))
        response = await reader.hear()
        assert (response.entry_id, response.entry, response.lac) == (0, entry(1, 0), 1)
        assert response.lac_updated_ms
        assert not len(served.ledgers.waiters)
        assert not len(served.services.deadlines)


async def test_a_long_poll_ends_with_its_time(served):
    async with served.dial(3) as peer:
        response = await peer.ask(add(1, 0, lac=-1), poll(-1, 20))
        assert response == ReadEntry(Status.OK, 1, LAST_ENTRY, None, -1)


async def test_a_long_poll_ends_with_a_fence_and_with_its_connection(served):
    async with served.dial(3) as writer:
        await writer.ask(add(1, 0))
        async with served.dial(3) as reader:
            await reader.say(poll(-1, 60_000), poll(-1, 60_000, piggyback=False, entry_id=0))
            while len(served.ledgers.waiters) < 2:
                await trio.lowlevel.checkpoint()
            await writer.ask(Read(1, 0, KEY, fence=True))
            answers = [await reader.hear() for _ in range(2)]
            assert [(one.status, one.entry) for one in answers] == [
                (Status.OK, None),
                (Status.OK, entry(1, 0)),
            ]
            await reader.say(poll(-1, 60_000))
            while not len(served.ledgers.waiters):
                await trio.lowlevel.checkpoint()
        while len(served.ledgers.waiters):
            await trio.lowlevel.checkpoint()
        assert not len(served.services.deadlines)


async def test_a_long_poll_of_a_ledger_that_was_not_used_since_the_start(served):
    async with served.dial(3) as peer:
        await peer.ask(add(1, 0), add(1, 1, lac=0))
    async with serving(*served.crashed()) as again, again.dial(3) as peer:
        response = await peer.ask(poll(-1, 60_000))
        assert (response.entry_id, response.lac) == (0, 0)
        response = await peer.ask(poll(0, 20))
        assert (response.entry, response.lac) == (None, 0)


async def test_a_poll_for_an_entry_of_another_bookie(served):
    async with served.dial(3) as peer:
        response = await peer.ask(add(1, 0), add(1, 2, lac=1), poll(0, 1000))
        assert response == ReadEntry(Status.OK, 1, LAST_ENTRY, None, 1)
        response = await peer.ask(poll(0, 1000, entry_id=5))
        assert response.status is Status.BAD_REQUEST


async def test_a_ledger_in_limbo_denies_nothing(served):
    async with served.dial() as peer:
        await peer.ask(add(1, 0))
        served.ledgers.known(1).limbo = True
        assert (await peer.ask(Read(1, 0))).status is Status.OK
        assert (await peer.ask(Read(1, 1))).status is Status.UNKNOWN_LEDGER_STATE


async def test_batches(served):
    async with served.dial() as peer:
        await peer.ask(*(add(1, i, b"p" * 100) for i in range(50)))
        whole = [entry(1, i, b"p" * 100) for i in range(50)]
        size = len(whole[0]) + 4
        for _ in range(2):
            some = await peer.ask(BatchRead(1, 10, 7, 5, 1 << 20))
            assert some == ReadEntries(Status.OK, 1, 10, 7, tuple(whole[10:15]))
            every = await peer.ask(BatchRead(1, 0, 8, 0, 1 << 20))
            assert list(every.entries) == whole
            few = await peer.ask(BatchRead(1, 0, 9, 0, 36 + 3 * size))
            assert list(few.entries) == whole[:3]
            one = await peer.ask(BatchRead(1, 49, 10, 0, 1))
            assert list(one.entries) == whole[49:]
            none = await peer.ask(BatchRead(1, 50, 11, 0, 100))
            assert none == ReadEntries(Status.NO_ENTRY, 1, 50, 11)
            await served.checkpoint()
        fenced = await peer.ask(BatchRead(1, 0, 12, 1, 100, KEY, True))
        assert fenced.status is Status.OK
        assert (await peer.ask(add(1, 50))).status is Status.FENCED


async def test_the_entries_of_a_ledger(served):
    async with served.dial(3) as peer:
        await peer.ask(add(1, 0), add(1, 1), add(1, 3))
        await served.checkpoint()
        await peer.ask(add(1, 4))
        found = await peer.ask(ListEntries(1))
        assert found == EntryList(Status.OK, 1, availability.encode([0, 1, 3, 4]))
        assert (await peer.ask(ListEntries(2))).status is Status.NO_LEDGER


async def test_a_list_that_would_fill_more_than_a_frame(disk):
    limits = RequestLimits(netty_max_frame_size_bytes=1000)
    async with serving(disk, limits=limits) as served, served.dial(3) as peer:
        await peer.ask(*(add(1, i * i) for i in range(100)))
        response = await peer.ask(ListEntries(1))
        assert response == EntryList(Status.BAD_REQUEST, 1)


async def test_the_last_confirmed_of_an_empty_ledger(served):
    async with served.dial(3) as peer:
        assert await peer.ask(ReadLac(1)) == Lac(Status.NO_LEDGER, 1)
        await peer.ask(Read(1, 0, KEY, fence=True))
        assert await peer.ask(ReadLac(1)) == Lac(Status.NO_ENTRY, 1)


@pytest.mark.parametrize("kind", ["CRC32", "CRC32C"])
async def test_the_highest_id_is_one_like_the_others(served, kind):
    last = 2**63 - 1
    digest = digests.digest_type(LedgerMetadata.DigestType.Value(kind), b"")
    stored = entry(1, last, digest=digest)
    async with served.dial(3) as peer:
        await peer.ask(add(1, last, digest=digest))
        for _ in range(2):
            assert (await peer.ask(LAST)).entry == stored
            assert (await peer.ask(Read(1, last))).entry == stored
            assert (await peer.ask(ReadLac(1))).last_entry == stored
            assert availability.decode((await peer.ask(ListEntries(1))).availability) == [last]
            await served.checkpoint()
    async with served.dial() as peer:
        for _ in range(2):
            found = await peer.ask(BatchRead(1, last, 7, 0, 1 << 20))
            assert (found.status, found.entries) == (Status.OK, (stored,))
            await served.checkpoint()


@pytest.mark.parametrize("part", ["entry", "entry_at_once"])
async def test_a_read_that_fails_as_nobody_expected_costs_one_connection(
    served, monkeypatch, caplog, part
):
    async with served.dial() as other, served.dial() as peer:
        await other.ask(add(1, 0))
        await served.checkpoint()
        with monkeypatch.context() as patched:
            patched.setattr(served.ledgers, part, lambda *_: 1 // 0)
            await peer.say(Read(1, 0), Read(1, 0))
            with pytest.raises(EOFError):
                await peer.hear()
        assert "ZeroDivisionError" in caplog.text
        assert served.services.reads.count == 0
        assert (await other.ask(Read(1, 0))).status is Status.OK


async def test_a_recovery_is_answered_in_order_and_before_others(served):
    """So what is read ahead from the disk for one read serves the next ones."""
    async with served.dial() as peer:
        striped = [i for i in range(600) if i % 3 != 1]
        await peer.ask(*(add(1, i, b"%d" % i) for i in striped))
        await peer.ask(Read(1, LAST_ENTRY, KEY, fence=True))
        await served.checkpoint()
        await peer.say(
            *[Read(1, i) for i in striped[-10:]],
            *[Read(1, i, KEY, fence=True, high_priority=True) for i in striped[:100]],
        )
        heard = [(await peer.hear()).entry_id for _ in range(110)]
        assert heard == striped[:100] + striped[-10:]
        assert served.store._bookie.lookup.counters.from_disk <= 3


async def test_of_ten_thousand_reads_at_once_some_are_refused(disk):
    async with (
        serving(disk, limits=RequestLimits(max_pending_read_requests_per_thread=100)) as served,
        served.dial() as peer,
    ):
        await peer.ask(add(1, 0, b"z" * 1000))
        await served.checkpoint()
        await peer.say(*[LAST] * 10_000)
        answers = [(await peer.hear()).status for _ in range(10_000)]
        assert set(answers) == {Status.OK, Status.TOO_MANY_REQUESTS}
        assert served.services.reads.count == 0


async def test_a_client_that_never_receives_costs_little(disk):
    limits = LinkLimits(outbox_high_bytes=64 * 1024)
    async with serving(disk, link_limits=limits) as served, served.dial() as peer:
        await peer.ask(add(1, 0, b"z" * 1_000_000))
        await peer.say(*[Read(1, 0)] * 1000)
        async with served.dial() as other:
            for _ in range(20):
                assert (await other.ask(Read(1, 0))).status is Status.OK
        held = [one.outbox_bytes for one in served.link._connections.values()]
        assert sum(held) < 3_000_000
        for _ in range(1000):  # it begins to
            assert (await peer.hear()).status is Status.OK
        assert served.services.reads.count == 0


async def test_clients_with_many_reads_leave_places_for_those_with_few(disk):
    limits = RequestLimits(max_pending_read_requests_per_thread=20)  # 160 of all connections
    link_limits = LinkLimits(outbox_high_bytes=64 * 1024)
    async with (
        serving(disk, limits=limits, link_limits=link_limits) as served,
        AsyncExitStack() as s,
    ):
        floods = [await s.enter_async_context(served.dial()) for _ in range(10)]
        await floods[0].ask(add(1, 0, b"z" * 1_000_000))
        for flood in floods:
            await flood.say(*[Read(1, 0)] * 100)
        async with served.dial() as other:
            while served.services.reads.count < 120:
                await other.ask(Read(1, 0))
            for _ in range(20):
                assert (await other.ask(Read(1, 0))).status is Status.OK


async def hear_all(peer, count):
    for _ in range(count):
        assert (await peer.hear()).status is Status.OK


@pytest.mark.parametrize("on_disk", [False, True])
async def test_large_entries_that_nobody_receives_hold_up_no_other_read(disk, on_disk):
    limits = LinkLimits(sending_bytes_max=8 << 20, outbox_high_bytes=1 << 16, stalled_seconds=60)
    async with (
        serving(disk, link_limits=limits) as served,
        AsyncExitStack() as s,
        served.dial() as other,
    ):
        served.let_the_system_hold(1 << 16)
        peers = [await s.enter_async_context(served.dial()) for _ in range(20)]
        await other.ask(add(1, 0, b"z" * 1_000_000), *(add(2, i, b"y" * 100) for i in range(9)))
        if on_disk:
            await served.checkpoint()
        for peer in peers:
            await peer.say(*[Read(1, 0)] * 8)
        outgoing = served.link.outgoing
        while not outgoing.claims.waiting:
            assert (await other.ask(Read(2, 0))).status is Status.OK
        assert outgoing.used <= 5 << 20
        for i in range(9):
            assert (await other.ask(Read(2, i))).status is Status.OK
        assert len((await other.ask(BatchRead(2, 0, 1, 0, 1 << 20))).entries) == 9
        fencing = Read(1, 0, KEY, fence=True, high_priority=True)
        assert (await other.ask(fencing)).status is Status.OK
        assert outgoing.claims.waiting
        async with trio.open_nursery() as nursery:
            for peer in peers:
                nursery.start_soon(hear_all, peer, 8)
        assert not outgoing.claims.waiting
        assert outgoing.used == 0


async def test_reads_that_call_themselves_urgent_hold_up_nobody(disk):
    limits = LinkLimits(sending_bytes_max=8 << 20, outbox_high_bytes=1 << 16, stalled_seconds=60)
    fencing = Read(1, 0, KEY, fence=True, high_priority=True)
    async with (
        serving(disk, link_limits=limits) as served,
        AsyncExitStack() as s,
        served.dial() as recovering,
        served.dial() as other,
    ):
        flood = [await s.enter_async_context(served.dial()) for _ in range(20)]
        await other.ask(add(1, 0, b"z" * 1_000_000))
        assert (await recovering.ask(fencing)).status is Status.OK
        for peer in flood:
            await peer.say(*[fencing] * 8)
        outgoing = served.link.outgoing
        while not outgoing.claims.waiting:
            assert (await recovering.ask(fencing)).status is Status.OK
        for _ in range(3):
            assert (await recovering.ask(fencing)).status is Status.OK
            assert (await other.ask(Read(1, 0))).status is Status.OK
        assert outgoing.claims.waiting
        async with trio.open_nursery() as nursery:
            for peer in flood:
                nursery.start_soon(hear_all, peer, 8)
        assert not outgoing.claims.waiting
        assert outgoing.used == 0


async def test_a_batch_that_nobody_receives_is_counted_before_it_is_gathered(disk):
    limits = LinkLimits(sending_bytes_max=8 << 20)
    async with (
        serving(disk, link_limits=limits) as served,
        AsyncExitStack() as s,
        served.dial() as other,
    ):
        await other.ask(*(add(1, i, b"z" * 1000) for i in range(3000)))
        await served.checkpoint()
        peers = [await s.enter_async_context(served.dial()) for _ in range(30)]
        for peer in peers:
            await peer.say(BatchRead(1, 0, 0, 0, 5 << 20))
        sizes = [sum(map(len, (await peer.hear()).entries)) for peer in peers]
        assert all(sizes)
        assert sum(sizes) < 8 << 20
