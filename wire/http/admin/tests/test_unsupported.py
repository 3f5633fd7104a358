"""What this server has not."""

import pytest

from magnetar.wire.http.tests.visitor import Visitor


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v3/functions/public/default",
        "/admin/v2/worker/cluster",
        *("/admin/v3/sink/public/default", "/admin/v3/source/public/default"),
        *("/admin/v3/sinks/builtinsinks", "/admin/v3/sources/builtinsources"),
        "/admin/v2/resource-quotas",
        "/admin/persistent/p/c/n/t/stats",
    ],
)
async def test_the_rest_is_refused_with_a_reason(visitor: Visitor, path: str) -> None:
    assert len(await visitor.fails(405, "GET", path)) > 20
