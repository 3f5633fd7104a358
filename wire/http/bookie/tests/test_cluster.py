from magnetar.core.kernel.errors import Corrupted
from magnetar.wire.http.bookie.tests.bookies import visiting


async def test_bookies_and_the_cluster() -> None:
    async with visiting() as visitor:
        path = "/api/v1/bookie/list_bookies"
        assert await visitor.get(path) == {"b1": None, "b2": None}
        named = f"{path}?type=ro&print_hostnames=true"
        assert await visitor.get(named) == {"b3": "h3"}
        assert "rw or ro" in await visitor.fails(400, "GET", f"{path}?type=x")
        assert await visitor.get("/api/v1/bookie/cluster_info") == {
            "auditorElected": True,
            "auditorId": "b1",
            "clusterUnderReplicated": True,
            "ledgerReplicationEnabled": True,
            "totalBookiesCount": 4,
            "writableBookiesCount": 2,
            "readonlyBookiesCount": 1,
            "unavailableBookiesCount": 1,
        }


async def test_ledgers_page_by_page() -> None:
    async with visiting() as visitor:
        path = "/api/v1/ledger/list"
        assert len(await visitor.get(path)) == 250
        assert list(await visitor.get(f"{path}?page=3")) == [str(i) for i in range(201, 251)]
        described = await visitor.get(f"{path}?print_metadata=true&page=1")
        assert len(described) == 100
        assert described["100"] == {"state": "OPEN"}
        assert await visitor.get("/api/v1/ledger/metadata?ledger_id=7") == {"7": {"state": "OPEN"}}
        assert "ledger_id" in await visitor.fails(400, "GET", "/api/v1/ledger/metadata")


async def test_metadata_that_make_no_sense_hide_no_others(monkeypatch) -> None:
    async with visiting() as visitor:
        cluster = visitor.bookie.cluster
        sound = cluster.ledger

        async def ledger(ledger_id: int) -> object:
            if ledger_id == 2:
                raise Corrupted("metadata of ledger 2: noise")
            return await sound(ledger_id)

        monkeypatch.setattr(cluster, "ledger", ledger)
        described = await visitor.get("/api/v1/ledger/list?print_metadata=true&page=1")
        assert described["1"] == described["3"] == {"state": "OPEN"}
        assert described["2"] == {
            "ledgerId": 2,
            "error": "metadata of ledger 2: noise",
        }


async def test_a_ledger_is_deleted() -> None:
    async with visiting() as visitor:
        path = "/api/v1/ledger/delete?ledger_id=7"
        assert await visitor.does("DELETE", path) == "Deleted ledger: 7"
        assert "no ledger 7" in await visitor.fails(404, "DELETE", path)
        assert "7" not in await visitor.get("/api/v1/ledger/list")


async def test_a_bookie_that_is_alone_knows_no_cluster() -> None:
    async with visiting(alone=True) as visitor:
        for path in (
            "bookie/list_bookies",
            "bookie/cluster_info",
            "ledger/list",
            "bookie/list_bookie_info",
        ):
            assert "--metadata-uri" in await visitor.fails(405, "GET", f"/api/v1/{path}")


async def test_the_room_of_all_bookies_is_told_in_apaches_words() -> None:
    async with visiting() as visitor:
        assert await visitor.get("/api/v1/bookie/list_bookie_info") == {
            "b1": ": {Free: 999, Total: 1234567(1.234MB)},",
            "b2": ": {Free: 5000000000(5GB), Total: 6000000000(6GB)},",
            "ClusterInfo: ": "{Free: 5000000999(5GB), Total: 6001234567(6.001GB)}",
        }
        assert visitor.bookie.peers is not None
        visitor.bookie.peers.disks = {}
        await visitor.fails(404, "GET", "/api/v1/bookie/list_bookie_info")


async def test_entries_are_read_page_by_page() -> None:
    async with visiting() as visitor:
        path = "/api/v1/ledger/read?ledger_id=7"
        assert await visitor.get(path) == {"0": "one", "1": "\ufffdtwo"}
        page = await visitor.get(f"{path}&page=2")
        assert page["Entries for page: "] == "2"
        assert page["1000"] == "one"
        await visitor.get(f"{path}&start_entry_id=5&end_entry_id=6")
        await visitor.get(f"{path}&start_entry_id=5&end_entry_id=100000")
        await visitor.fails(400, "GET", f"{path}&start_entry_id=5&end_entry_id=4")
        await visitor.fails(400, "GET", "/api/v1/ledger/read")
        assert visitor.bookie.peers is not None
        assert visitor.bookie.peers.asked == [
            (7, 0, 999), (7, 1000, 1999), (7, 5, 6), (7, 5, 1004),
        ]  # fmt: skip
