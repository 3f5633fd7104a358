"""What a broker serves, one path of each table; the rooms have the rest."""

import pytest

from magnetar.wire.http.tests.visitor import Visitor


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics",
        "/healthz",
        "/lookup/v2/topic/persistent/public/default/t",
        "/admin/v2/clusters",
        "/admin/v2/namespaces/public/default/retention",
    ],
)
async def test_each_table_is_served(visitor: Visitor, path: str) -> None:
    assert (await visitor.ask("GET", path)).status_code in (200, 204)


async def test_paths_of_a_bookie_are_not(visitor: Visitor) -> None:
    await visitor.fails(404, "GET", "/api/v1/bookie/state")
