"""Namespaces: their life, what is in them, permissions and properties."""

from magnetar.wire.http.endpoints.lookup import BUNDLE
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/namespaces/public/n"


async def test_a_namespace_comes_and_goes(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE, {"bundles": {"numBundles": 4, "boundaries": None}})
    assert await visitor.get("/admin/v2/namespaces/public") == ["public/default", "public/n"]
    await visitor.fails(409, "PUT", HERE)
    await visitor.does("DELETE", HERE)
    await visitor.fails(404, "GET", HERE)
    await visitor.fails(404, "GET", "/admin/v2/namespaces/nobody")
    await visitor.fails(404, "PUT", "/admin/v2/namespaces/nobody/n")


async def test_what_suites_send_at_creation_takes_effect(visitor: Visitor) -> None:
    await visitor.does(
        "PUT",
        HERE,
        {
            "auth_policies": {"namespace_auth": {"me": ["produce", "consume"]}},
            "replication_clusters": ["standalone"],
            "encryption_required": True,
            "schema_validation_enforced": True,
            "persistence": None,
            "unheard_of": 1,
        },
    )
    assert await visitor.get(f"{HERE}/permissions") == {"me": ["produce", "consume"]}
    assert await visitor.get(f"{HERE}/encryptionRequired") is True
    assert await visitor.get(f"{HERE}/schemaValidationEnforced") is True
    policies = await visitor.get(HERE)
    assert policies["replication_clusters"] == ["standalone"]
    assert policies["schema_validation_enforced"] is True
    assert "unheard_of" not in policies


async def test_a_list_of_clusters_makes_a_namespace_too(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE, ["standalone"])
    assert await visitor.get(f"{HERE}/replication") == ["standalone"]


async def test_a_namespace_with_topics_goes_only_by_force(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE)
    await visitor.does("PUT", "/admin/v2/persistent/public/n/a/partitions", 2)
    await visitor.fails(409, "DELETE", HERE)
    await visitor.does("DELETE", f"{HERE}?force=true")
    await visitor.does("PUT", HERE)
    assert await visitor.get(f"{HERE}/topics?mode=ALL") == []


async def test_topics_are_listed_by_domain(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE)
    await visitor.does("PUT", "/admin/v2/persistent/public/n/a")
    await visitor.does("PUT", "/admin/v2/non-persistent/public/n/b")
    stored, not_stored = "persistent://public/n/a", "non-persistent://public/n/b"
    assert await visitor.get(f"{HERE}/topics") == [stored]
    assert await visitor.get(f"{HERE}/topics?mode=NON_PERSISTENT") == [not_stored]
    assert await visitor.get(f"{HERE}/topics?mode=ALL") == [not_stored, stored]
    await visitor.fails(400, "GET", f"{HERE}/topics?mode=SOME")
    await visitor.fails(404, "GET", "/admin/v2/namespaces/public/missing/topics")


async def test_a_namespace_is_one_bundle(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE)
    bundles = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
    assert await visitor.get(f"{HERE}/bundles") == bundles
    await visitor.does("PUT", "/admin/v2/persistent/public/n/a")
    await visitor.does("PUT", f"{HERE}/{BUNDLE}/unload")
    assert visitor.broker.topics == {}
    await visitor.does("PUT", f"{HERE}/unload")
    await visitor.fails(404, "PUT", f"{HERE}/0x0_0x1/unload")
    await visitor.fails(405, "PUT", f"{HERE}/{BUNDLE}/split")


async def test_backlogs_are_cleared(visitor: Visitor) -> None:
    name = "persistent://public/default/a"
    topic = await visitor.topic(name)
    first, second = await topic.subscription("one"), await topic.subscription("two")
    await visitor.publish(name, [b"m"] * 3)
    assert (first.cursor.backlog, second.cursor.backlog) == (3, 3)
    default = "/admin/v2/namespaces/public/default"
    await visitor.does("POST", f"{default}/clearBacklog/one")
    assert (first.cursor.backlog, second.cursor.backlog) == (0, 3)
    await visitor.does("POST", f"{default}/clearBacklog")
    assert second.cursor.backlog == 0
    await visitor.does("POST", f"{default}/unsubscribe/one")
    assert list(topic.subscriptions) == ["two"]
    await visitor.fails(404, "POST", f"{default}/unsubscribe/one")


async def test_backlogs_of_a_bundle_are_those_of_the_namespace(visitor: Visitor) -> None:
    name = "persistent://public/default/a"
    topic = await visitor.topic(name)
    first, second = await topic.subscription("one"), await topic.subscription("two")
    await visitor.publish(name, [b"m"] * 3)
    bundle = f"/admin/v2/namespaces/public/default/{BUNDLE}"
    await visitor.does("POST", f"{bundle}/clearBacklog/one")
    assert (first.cursor.backlog, second.cursor.backlog) == (0, 3)
    await visitor.does("POST", f"{bundle}/clearBacklog")
    assert second.cursor.backlog == 0
    await visitor.does("POST", f"{bundle}/unsubscribe/one")
    assert list(topic.subscriptions) == ["two"]
    other = "/admin/v2/namespaces/public/default/0x00000000_0x80000000"
    for path in ("clearBacklog", "clearBacklog/two", "unsubscribe/two"):
        assert "there is no bundle" in await visitor.fails(404, "POST", f"{other}/{path}")
    assert list(topic.subscriptions) == ["two"]


async def test_a_bundle_is_deleted_with_its_topics_and_not_its_namespace(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE)
    await visitor.does("POST", f"{HERE}/messageTTL", 5)
    await visitor.does("DELETE", f"{HERE}/{BUNDLE}")
    await visitor.does("PUT", "/admin/v2/persistent/public/n/a")
    await visitor.does("PUT", "/admin/v2/persistent/public/n/p/partitions", 2)
    why = await visitor.fails(409, "DELETE", f"{HERE}/{BUNDLE}")
    assert why == "Cannot delete non empty bundle"
    await visitor.fails(404, "DELETE", f"{HERE}/0x0_0x1?force=true")
    assert len(await visitor.get(f"{HERE}/topics")) == 3
    await visitor.does("DELETE", f"{HERE}/{BUNDLE}?force=true")
    assert await visitor.get(f"{HERE}/topics") == []
    assert await visitor.get("/admin/v2/persistent/public/n/partitioned") == []
    assert await visitor.get(f"{HERE}/messageTTL") == 5
    await visitor.fails(404, "DELETE", f"/admin/v2/namespaces/public/missing/{BUNDLE}")
    await visitor.fails(404, "GET", f"{HERE}/nothing")


async def test_permissions_are_kept(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE)
    await visitor.does("POST", f"{HERE}/permissions/me", ["produce", "consume"])
    await visitor.does("POST", f"{HERE}/permissions/you", ["consume"])
    assert await visitor.get(f"{HERE}/permissions") == {
        "me": ["consume", "produce"],
        "you": ["consume"],
    }
    assert "'fly'" in await visitor.fails(400, "POST", f"{HERE}/permissions/me", ["fly"])
    for nothing in (b"", b"null"):
        await visitor.fails(400, "POST", f"{HERE}/permissions/you", nothing)
        await visitor.fails(400, "POST", f"{HERE}/permissions/subscription/s", nothing)
    await visitor.does("DELETE", f"{HERE}/permissions/me")
    assert await visitor.get(f"{HERE}/permissions") == {"you": ["consume"]}
    await visitor.does("POST", f"{HERE}/permissions/subscription/s", ["me", "you", "me"])
    await visitor.does("DELETE", f"{HERE}/permissions/s/me")
    assert await visitor.get(f"{HERE}/permissions/subscription") == {"s": ["you"]}
    assert await visitor.get("/admin/v2/namespaces/public/default/permissions") == {}


async def test_properties_are_kept(visitor: Visitor) -> None:
    await visitor.does("PUT", HERE)
    await visitor.does("PUT", f"{HERE}/property/a/1")
    await visitor.does("PUT", f"{HERE}/properties", {"b": "2"})
    assert await visitor.get(f"{HERE}/properties") == {"a": "1", "b": "2"}
    assert (await visitor.ask("GET", f"{HERE}/property/a")).text == "1"
    assert (await visitor.ask("DELETE", f"{HERE}/property/a")).text == "1"
    assert await visitor.get(f"{HERE}/property/a") is None
    await visitor.does("DELETE", f"{HERE}/properties")
    assert await visitor.get(f"{HERE}/properties") == {}


async def test_a_namespace_is_not_created_with_entry_filters(visitor: Visitor) -> None:
    filters = {"entryFilters": {"entryFilterNames": "x"}}
    await visitor.fails(405, "PUT", "/admin/v2/namespaces/public/filtered", filters)
    await visitor.fails(404, "GET", "/admin/v2/namespaces/public/filtered")
    await visitor.does("PUT", "/admin/v2/namespaces/public/filtered", {"entryFilters": None})
