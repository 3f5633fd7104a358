from magnetar.wire.http.bookie.tests.bookies import visiting


async def test_what_is_not_here_says_where_it_is() -> None:
    async with visiting() as visitor:
        for method, path, said in (
            ("PUT", "/api/v1/bookie/expand_storage", "--allow-storage-expansion"),
            ("PUT", "/api/v1/autorecovery/bookie", "magnetar bookie recover"),
            ("PUT", "/api/v1/autorecovery/decommission", "magnetar bookie decommission"),
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
