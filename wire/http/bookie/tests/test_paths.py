from magnetar.wire.http.bookie.tests.bookies import visiting


async def test_what_is_not_here_says_where_it_is() -> None:
    async with visiting() as visitor:
        for method, path, said in (
            ("GET", "/api/v1/bookie/list_bookie_info", "bookieinfo"),
            ("PUT", "/api/v1/bookie/expand_storage", "--allow-storage-expansion"),
            ("GET", "/api/v1/ledger/read?ledger_id=1", "magnetar ledger read"),
            ("GET", "/api/v1/autorecovery/status", "magnetar bookie autorecovery"),
            ("PUT", "/api/v1/autorecovery/decommission", "magnetar bookie autorecovery"),
        ):
            assert said in await visitor.fails(405, method, path)
        assert "there is no /admin" in await visitor.fails(404, "GET", "/admin/v2/clusters")


async def test_foreign_pages_are_refused() -> None:
    async with visiting() as visitor:
        headers = {"origin": "http://evil.example"}
        path = "/api/v1/bookie/state/readonly"
        response = await visitor.client.put(path, json={"readOnly": True}, headers=headers)
        assert response.status_code == 403
        assert not visitor.bookie.read_only
