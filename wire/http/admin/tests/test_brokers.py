"""This server, as the cluster it is."""

from magnetar.core.cluster.ownership import OwnershipTable, Peer
from magnetar.core.kernel.names import TopicName
from magnetar.wire.http.admin.brokers import TOPICS_PER_REST
from magnetar.wire.http.endpoints.lookup import BUNDLE
from magnetar.wire.http.tests.visitor import Visitor, visiting

HERE = "/admin/v2/brokers"


async def test_the_one_broker(visitor: Visitor) -> None:
    assert await visitor.get(HERE) == ["127.0.0.1:8080"]
    assert await visitor.get(f"{HERE}/standalone") == ["127.0.0.1:8080"]
    assert await visitor.get(f"{HERE}/leaderBroker") == {
        "brokerId": "127.0.0.1:8080",
        "serviceUrl": "http://127.0.0.1:8080",
    }
    assert (await visitor.ask("GET", f"{HERE}/version")).text == "Magnetar 1"
    owned = await visitor.get(f"{HERE}/standalone/127.0.0.1:8080/ownedNamespaces")
    assert list(owned) == [f"public/default/{BUNDLE}", f"pulsar/system/{BUNDLE}"]
    await visitor.fails(404, "GET", f"{HERE}/elsewhere")


async def test_settings_are_shown_and_not_changed(visitor: Visitor) -> None:
    assert await visitor.get(f"{HERE}/configuration") == []
    assert await visitor.get(f"{HERE}/configuration/values") == {}
    assert await visitor.get(f"{HERE}/configuration/runtime") == {}
    assert "ledgersRootPath" in await visitor.get(f"{HERE}/internal-configuration")
    await visitor.fails(405, "POST", f"{HERE}/configuration/a/1")
    await visitor.fails(405, "DELETE", f"{HERE}/configuration/a")
    await visitor.topic("a")
    await visitor.does("POST", f"{HERE}/backlog-quota-check")


async def test_stats_of_everything_that_is_loaded(visitor: Visitor) -> None:
    await visitor.publish("a", [b"m"])
    stats = "/admin/v2/broker-stats"
    name = "persistent://public/default/a"
    assert set(await visitor.get(f"{stats}/topics")) == {"public/default"}
    await visitor.broker.topic(TopicName.parse("non-persistent://public/default/v"))
    for number in range(TOPICS_PER_REST + 1):
        await visitor.topic(f"public/default/many-{number}")
    found = await visitor.get(f"{stats}/topics")
    assert found["public/default"][BUNDLE]["persistent"][name]["msgInCounter"] == 1
    assert len(found["public/default"][BUNDLE]["persistent"]) == TOPICS_PER_REST + 2
    assert len(found["public/default"][BUNDLE]["non-persistent"]) == 1
    assert (await visitor.get(f"{stats}/load-report"))["numTopics"] == TOPICS_PER_REST + 3
    whole, namespace = await visitor.get(f"{stats}/metrics")
    assert whole["dimensions"] == {"cluster": "standalone"}
    assert namespace["dimensions"] == {"cluster": "standalone", "namespace": "public/default"}
    assert whole["metrics"] == namespace["metrics"]
    assert whole["metrics"]["brk_no_of_topics"] == TOPICS_PER_REST + 3
    assert whole["metrics"]["brk_storage_size"] > 0
    assert await visitor.get(f"{stats}/mbeans") == []
    await visitor.fails(405, "GET", f"{stats}/allocator-stats/default")
    await visitor.fails(405, "GET", f"{stats}/broker-resource-availability/public/default")


async def test_a_bad_query_is_refused_before_the_answer_begins(visitor: Visitor) -> None:
    await visitor.topic("a")
    assert "UTF-8" in await visitor.fails(400, "GET", "/admin/v2/broker-stats/topics?x=%ff")


async def test_each_broker_of_a_cluster_tells_of_its_own_namespaces() -> None:
    peer = Peer(7, {"http": "b:8080"})
    async with visiting(ownership=OwnershipTable(peer)) as visitor:
        cluster, ours = visitor.broker.settings.cluster, "127.0.0.1:8080"
        path = f"{HERE}/{cluster}/{ours}/ownedNamespaces"
        assert await visitor.get(path) == {}, "none of its topics is loaded"
        await visitor.topic("t")
        assert list(await visitor.get(path)) == ["public/default/0x00000000_0xffffffff"]
        theirs = path.replace(ours, "b:8080")
        response = await visitor.ask("GET", theirs)
        assert (response.status_code, response.headers["location"]) == (
            307,
            f"http://b:8080{theirs}",
        )
