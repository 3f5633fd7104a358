from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.request_counters import RequestKind
from magnetar.bookie.requests.tests.peers import KEY, add, serving
from magnetar.bookie.rpc.messages import (
    LAST_ENTRY,
    BatchRead,
    ForceLedger,
    GetBookieInfo,
    ListEntries,
    Read,
    ReadLac,
    WriteLac,
)


async def test_each_request_counts_once_by_its_kind(served) -> None:
    asked = [
        (RequestKind.ADD, add(1, 0)),
        (RequestKind.READ, Read(1, 0)),
        (RequestKind.READ, BatchRead(1, 0, 7, 10, 1000)),
        (RequestKind.LONG_POLL, Read(1, LAST_ENTRY, previous_lac=-2, timeout_ms=10)),
        (RequestKind.FORCE, ForceLedger(1)),
        (RequestKind.READ_LAC, ReadLac(1)),
        (RequestKind.INFO, GetBookieInfo(True, True)),
        (RequestKind.LIST, ListEntries(1)),
        (RequestKind.FENCE, Read(1, LAST_ENTRY, KEY, fence=True)),
    ]
    counters = served.services.counters
    async with served.dial(2) as old, served.dial(3) as new:
        for kind, request in asked:
            before = counters.good[kind]
            await (old if isinstance(request, BatchRead) else new).ask(request)
            assert counters.good[kind] == before + 1, kind
        await new.ask(add(1, 1))
        assert counters.failed[RequestKind.ADD] == 1, "it is fenced"
        await new.ask(WriteLac(1, 0, KEY, b"nonsense"))
        assert counters.failed[RequestKind.WRITE_LAC] == 1
        await new.ask(Read(2, 0))
        assert counters.failed[RequestKind.READ] == 1
        await old.ask(*[add(3, i) for i in range(50)])
        assert counters.good[RequestKind.ADD] == 51


async def test_what_was_refused_and_what_is_missing(disk) -> None:
    limits = RequestLimits(max_pending_read_requests_per_thread=1)
    async with serving(disk, limits=limits) as served, served.dial() as peer:
        await peer.ask(add(1, 0, b"z" * 1000))
        await served.checkpoint()
        await peer.ask(*[Read(1, LAST_ENTRY)] * 100)
        counters = served.services.counters
        assert counters.reads_rejected > 0
        assert counters.good[RequestKind.READ] + counters.failed[RequestKind.READ] == 100
        await peer.ask(Read(2, LAST_ENTRY, KEY, fence=True))
        assert counters.last_entries_missing == 1
