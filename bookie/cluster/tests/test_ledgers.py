import pytest

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.formatting import format_cluster, initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.format.layout import LAYOUTS
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import (
    AlreadyExists,
    Corrupted,
    LedgerNotFound,
    NotFound,
    StorageFailed,
)
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import overwrite, remove


def fresh(token: int = 1) -> LedgerMetadata:
    return ledger_metadata.fresh(("b:1",), (1, 1), {}, 0, token)


@pytest.fixture
def store() -> MemoryMetadata:
    return MemoryMetadata()


@pytest.fixture(params=list(LAYOUTS))
async def cluster(store, request) -> BookKeeperCluster:
    return await initialize_cluster(store, "one", layout=LAYOUTS[request.param])


async def test_ledgers_come_and_go(store, cluster) -> None:
    ledgers = ClusterLedgers(store, cluster)
    assert await ledgers.ids() == []
    wanted = [0, 7, 10_000, 2**31 - 2]
    if cluster.layout.long is not None:
        wanted += [2**31 - 1, 1 << 32, 2**63 - 1]
    for ledger_id in reversed(wanted):
        await ledgers.create(ledger_id, fresh())
    assert await ledgers.ids() == wanted
    with pytest.raises(AlreadyExists):
        await ledgers.create(7, fresh(token=2))
    assert (await ledgers.read(7)).cToken == 1
    for ledger_id in wanted:
        await ledgers.delete(ledger_id)
        await ledgers.delete(ledger_id)
        with pytest.raises(LedgerNotFound):
            await ledgers.read(ledger_id)
    assert await ledgers.ids() == []


async def test_a_change_is_decided_again_after_a_conflict(store) -> None:
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    await ledgers.create(1, fresh())
    seen: list[int] = []

    class Raced(Exception):
        pass

    def close(ledger: LedgerMetadata) -> bool:
        seen.append(ledger.lastEntryId)
        if len(seen) == 1:  # another client writes before us
            other = fresh()
            other.lastEntryId = 5
            path = "/ledgers/00/0000/L0001"
            store._values[path] = type(store._values[path])(
                ledger_metadata.encode(other, 2), store._values[path].version + 1
            )
        ledger.state = ledger_metadata.CLOSED
        return True

    await ledgers.change(1, close)
    assert seen == [-1, 5]
    stored = await store.get("/ledgers/00/0000/L0001")
    changed, form = ledger_metadata.decode(stored.value)
    assert (changed.state, changed.lastEntryId, form) == (ledger_metadata.CLOSED, 5, 2)
    await ledgers.change(1, lambda ledger: False)
    assert (await store.get("/ledgers/00/0000/L0001")).version == stored.version


async def test_levels_that_apaches_clients_made_go_with_the_last_ledger(store) -> None:
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    for path in ("/ledgers/00", "/ledgers/00/0000", "/ledgers/00/0001"):
        await overwrite(store, path, b"")
    await ledgers.create(1, fresh())
    await ledgers.create(10_001, fresh())
    await ledgers.delete(1)
    assert await store.children("/ledgers/00") == ["0001"]
    await ledgers.delete(10_001)
    assert "00" not in await store.children("/ledgers")
    assert await store.get("/ledgers") is not None


@pytest.mark.parametrize(
    "stray", ["00/0000/0001", "00/0000/L001", "00/0000/L0001x", "00/x", "0", "00/0000/L0002/x"]
)
async def test_a_list_that_would_not_be_whole_is_none(store, stray) -> None:
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    await ledgers.create(1, fresh())
    await overwrite(store, f"/ledgers/{stray}", b"")
    if stray == "00/0000/L0002/x":  # below a ledger nothing is looked at
        assert await ledgers.ids() == [1, 2]
        return
    with pytest.raises(Corrupted, match="would not be whole"):
        await ledgers.ids()


async def test_names_of_others_at_the_root_are_no_ledgers(store) -> None:
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    for name in ("underreplication/ledgers/0000", "ID-0000000007", "idgen/x", "disableHealthCheck"):
        await overwrite(store, f"/ledgers/{name}", b"")
    assert await ledgers.ids() == []


async def test_a_cluster_that_is_gone_or_another_has_no_list(store) -> None:
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    await ledgers.create(1, fresh())
    await remove(store, "/ledgers/LAYOUT")
    with pytest.raises(NotFound):
        await ledgers.ids()
    await format_cluster(store, "two", force=True)
    with pytest.raises(Corrupted, match="another one than before"):
        await ledgers.ids()


async def test_a_cluster_that_is_formatted_while_it_is_listed(store) -> None:
    class Formatted(MemoryMetadata):
        async def sync(self) -> None:
            await format_cluster(self, "two", force=True)

    store = Formatted()
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    await ledgers.create(1, fresh())
    with pytest.raises(Corrupted, match="another one than before"):
        await ledgers.ids()


async def test_deleted_ledgers_are_told_from_those_that_exist(store, cluster) -> None:
    ledgers = ClusterLedgers(store, cluster)
    for ledger_id in (1, 5):
        await ledgers.create(ledger_id, fresh())
    assert await ledgers.deleted([0, 1, 4, 5]) == [0, 4]
    assert await ledgers.deleted([]) == []
    far = [1 << 40] if cluster.layout.long is not None else []
    assert await ledgers.deleted([1 << 40]) == far, "where no ledger can be, none is deleted"
    assert await ledgers.last_entries() is None
    assert await ledgers.owner(5) == "nobody known"


async def test_a_ledger_that_is_only_missing_in_the_list_is_not_deleted() -> None:
    """It was created behind the place that the list had passed; or the list is wrong."""

    class Forgetful(MemoryMetadata):
        async def children(self, path):
            return [name for name in await super().children(path) if name != "L0002"]

    store = Forgetful()
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    for ledger_id in (1, 2):
        await ledgers.create(ledger_id, fresh())
    assert await ledgers.ids() == [1]
    assert await ledgers.deleted([1, 2, 3]) == [3]


async def test_nothing_is_deleted_of_a_cluster_that_is_formatted_meanwhile() -> None:
    class Formatted(MemoryMetadata):
        async def get(self, path):
            if path.endswith("L0003"):
                await format_cluster(self, "two", force=True)
            return await super().get(path)

    store = Formatted()
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    with pytest.raises(Corrupted, match="another one than before"):
        await ledgers.deleted([3])


@pytest.mark.parametrize("call", range(1, 8))
async def test_an_error_anywhere_is_an_error(call) -> None:
    class Failing(MemoryMetadata):
        left = 0

        async def get(self, path: str):
            self._count()
            return await super().get(path)

        async def children(self, path: str) -> list[str]:
            self._count()
            return await super().children(path)

        def _count(self) -> None:
            self.left -= 1
            if self.left == 0:
                raise StorageFailed("no answer")

    store = Failing()
    ledgers = ClusterLedgers(store, await initialize_cluster(store, "one"))
    await ledgers.create(1, fresh())
    store.left = call
    with pytest.raises(StorageFailed):
        await ledgers.ids()
