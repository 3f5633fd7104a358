"""Tenants."""

from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/tenants"


async def test_a_tenant_comes_changes_and_goes(visitor: Visitor) -> None:
    body = {"adminRoles": ["me"], "allowedClusters": ["standalone"]}
    await visitor.does("PUT", f"{HERE}/t", body)
    assert await visitor.get(HERE) == ["public", "pulsar", "t"]
    assert await visitor.get(f"{HERE}/t") == body
    await visitor.fails(409, "PUT", f"{HERE}/t", body)
    await visitor.does("POST", f"{HERE}/t", {"allowedClusters": ["standalone"]})
    assert (await visitor.get(f"{HERE}/t"))["adminRoles"] == []
    await visitor.does("DELETE", f"{HERE}/t")
    await visitor.fails(404, "GET", f"{HERE}/t")


async def test_a_tenant_lives_where_there_is_a_cluster(visitor: Visitor) -> None:
    """As Apache's broker says it (`TenantsBase.java`); pulsar-admin names all that there are."""
    body = {"allowedClusters": ["standalone", "nowhere"]}
    assert await visitor.fails(412, "PUT", f"{HERE}/t", body) == "Clusters do not exist"
    assert await visitor.fails(412, "POST", f"{HERE}/public", body) == "Clusters do not exist"
    for empty in (None, {}, {"allowedClusters": []}, {"allowedClusters": ["standalone", " "]}):
        why = await visitor.fails(412, "PUT", f"{HERE}/t", empty)
        assert why == "Clusters can not be empty"


async def test_lists_of_a_tenant_are_sets(visitor: Visitor) -> None:
    body = {"adminRoles": ["b", "a", "b"], "allowedClusters": ["standalone", "standalone"]}
    await visitor.does("PUT", f"{HERE}/t", body)
    kept = {"adminRoles": ["b", "a"], "allowedClusters": ["standalone"]}
    assert await visitor.get(f"{HERE}/t") == kept
    await visitor.does("POST", f"{HERE}/public", body)
    assert await visitor.get(f"{HERE}/public") == kept


async def test_no_administrator_has_a_name_that_looks_like_another(visitor: Visitor) -> None:
    body = {"adminRoles": ["me "], "allowedClusters": ["standalone"]}
    why = await visitor.fails(412, "PUT", f"{HERE}/t", body)
    assert why == "AdminRoles contains whitespace in the beginning or end."


async def test_a_tenant_with_namespaces_goes_only_by_force(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/t", {"allowedClusters": ["standalone"]})
    await visitor.does("PUT", "/admin/v2/namespaces/t/n", None)
    await visitor.does("PUT", "/admin/v2/persistent/t/n/a", None)
    await visitor.fails(409, "DELETE", f"{HERE}/t")
    await visitor.does("DELETE", f"{HERE}/t?force=true")
    assert await visitor.get(HERE) == ["public", "pulsar"]
