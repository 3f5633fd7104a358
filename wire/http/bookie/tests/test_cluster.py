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


async def test_a_ledger_is_deleted() -> None:
    async with visiting() as visitor:
        path = "/api/v1/ledger/delete?ledger_id=7"
        assert await visitor.does("DELETE", path) == "Deleted ledger: 7"
        assert "no ledger 7" in await visitor.fails(404, "DELETE", path)
        assert "7" not in await visitor.get("/api/v1/ledger/list")


async def test_a_bookie_that_is_alone_knows_no_cluster() -> None:
    async with visiting(alone=True) as visitor:
        for path in ("bookie/list_bookies", "bookie/cluster_info", "ledger/list"):
            assert "--metadata-uri" in await visitor.fails(405, "GET", f"/api/v1/{path}")
