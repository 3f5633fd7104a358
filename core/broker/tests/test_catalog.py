"""What the catalog keeps, refuses and remembers."""

import pytest
import trio
import trio.testing

from magnetar.core.broker import catalog as module
from magnetar.core.broker.catalog import Catalog, Tenant
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    Invalid,
    NamespaceNotFound,
    NotAllowed,
    NotFound,
)
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.policies import Effective, NamespacePolicies, TopicPolicies, encode
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.testing.metadata import overwrite

DEFAULT = NamespaceName.parse("public/default")
MINE = NamespaceName.parse("me/mine")
A = TopicName.parse("a")


async def opened(metadata: MemoryMetadata | None = None) -> Catalog:
    catalog = Catalog(metadata or MemoryMetadata(), Effective(), "standalone")
    await catalog.open()
    return catalog


async def test_what_every_client_expects_is_there() -> None:
    metadata = MemoryMetadata()
    catalog = await opened(metadata)
    assert await catalog.clusters() == ["standalone"]
    assert await catalog.namespaces("public") == ["public/default"]
    assert await catalog.has_namespace(DEFAULT)
    await catalog.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=7))
    again = await opened(metadata)
    assert (await again.effective(A)).message_ttl_seconds == 7, "opening again changes nothing"


async def test_clusters_and_tenants() -> None:
    catalog = await opened()
    await catalog.put_cluster("c", b'{"serviceUrl": "http://x", "other": 1}', create=True)
    assert b"other" in await catalog.get_cluster("c")
    with pytest.raises(AlreadyExists):
        await catalog.put_cluster("c", b"", create=True)
    with pytest.raises(NotFound):
        await catalog.put_cluster("d", b"", create=False)
    with pytest.raises(NotAllowed):
        await catalog.put_tenant("me", Tenant(allowed_clusters=["nowhere"]), create=True)
    await catalog.put_tenant("me", Tenant(allowed_clusters=["c"]), create=True)
    with pytest.raises(NotAllowed):
        await catalog.create_namespace(MINE, NamespacePolicies(replication=["standalone"]))
    await catalog.create_namespace(MINE, NamespacePolicies(replication=["c"]))
    with pytest.raises(AlreadyExists):
        await catalog.create_namespace(MINE, NamespacePolicies(replication=["c"]))
    with pytest.raises(AlreadyExists):
        await catalog.delete_tenant("me")
    await catalog.delete_namespace(MINE)
    await catalog.delete_tenant("me")
    with pytest.raises(NotFound):
        await catalog.get_tenant("me")
    await catalog.delete_cluster("c")
    assert await catalog.clusters() == ["standalone"]


async def test_the_nearest_policy_holds() -> None:
    catalog = await opened()
    await catalog.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=7))
    await catalog.set_topic_policies(A, TopicPolicies(message_ttl_seconds=3))
    assert (await catalog.effective(A)).message_ttl_seconds == 3
    assert (await catalog.effective(A.partition(2))).message_ttl_seconds == 3
    assert (await catalog.effective(TopicName.parse("b"))).message_ttl_seconds == 7
    await catalog.forget_topic(A)
    assert (await catalog.effective(A)).message_ttl_seconds == 7
    with pytest.raises(NamespaceNotFound):
        await catalog.effective(TopicName.parse("me/mine/a"))


async def test_partitions_only_grow() -> None:
    catalog = await opened()
    with pytest.raises(NotFound):
        await catalog.grow_partitioned(A, 2)
    for count in (0, -1, module.PARTITIONS_MAX + 1):
        with pytest.raises(Invalid):
            await catalog.create_partitioned(A, count)
    with pytest.raises(Invalid):
        await catalog.create_partitioned(A.partition(0), 2)
    await catalog.create_partitioned(A, 2)
    with pytest.raises(Invalid):
        await catalog.grow_partitioned(A, 2)
    await catalog.grow_partitioned(A, 5)
    assert await catalog.partitioned_of(DEFAULT) == {A: 5}


async def test_producer_names_are_never_given_twice() -> None:
    metadata = MemoryMetadata()
    names = {await (await opened(metadata)).new_producer_name() for _ in range(5)}
    assert len(names) == 5


async def test_what_somebody_else_changes_is_seen() -> None:
    metadata = MemoryMetadata()
    catalog = await opened(metadata)
    await catalog.policies(DEFAULT)
    path = f"/admin/policies/{DEFAULT}"
    await overwrite(metadata, path, encode(NamespacePolicies(message_ttl_seconds=9)))
    assert (await catalog.policies(DEFAULT)).message_ttl_seconds == 9


async def test_what_was_read_before_a_change_is_not_kept_after_it() -> None:
    """Once a slow read put the old value over the new one, for good."""
    metadata = MemoryMetadata()
    catalog = await opened(metadata)
    get, reading, go_on = metadata.get, trio.Event(), trio.Event()

    async def slow(path: str) -> Versioned | None:
        found = await get(path)
        reading.set()
        await go_on.wait()
        return found

    await catalog.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=1))
    metadata.get = slow  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(catalog.policies, DEFAULT)
        await reading.wait()
        metadata.get = get  # type: ignore[method-assign]
        await catalog.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=2))
        go_on.set()
    assert (await catalog.policies(DEFAULT)).message_ttl_seconds == 2


async def test_names_that_nobody_has_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_PATHS_MAX", 10)
    catalog = await opened()
    for i in range(100):
        assert await catalog.partitions(TopicName.parse(f"t{i}")) == 0
    assert len(catalog._cache) <= 10


async def test_a_report_of_a_whole_tree_ends_all_that_is_cached() -> None:
    """What a store over a network reports after a connection that broke."""
    metadata = MemoryMetadata()
    ours, theirs = await opened(metadata), await opened(metadata)
    assert (await ours.policies(DEFAULT)).message_ttl_seconds != 9
    watches, metadata._watches = metadata._watches, []
    await theirs.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=9))
    metadata._watches = watches
    assert (await ours.policies(DEFAULT)).message_ttl_seconds != 9, "it has heard nothing"
    await overwrite(metadata, "/admin", b"")
    assert (await ours.policies(DEFAULT)).message_ttl_seconds == 9


async def test_what_another_broker_changes_meanwhile_is_not_written_over() -> None:
    metadata = MemoryMetadata()
    ours, theirs = await opened(metadata), await opened(metadata)
    async with ours.changing(DEFAULT):
        policies = await ours.policies(DEFAULT)
        topic = await ours.topic_policies(A)
        await theirs.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=9))
        await theirs.set_topic_policies(A, TopicPolicies(max_producers_per_topic=1))
        with pytest.raises(BadVersion):
            await ours.set_policies(DEFAULT, policies)
        with pytest.raises(BadVersion):
            await ours.set_topic_policies(A, topic)
    assert (await ours.policies(DEFAULT)).message_ttl_seconds == 9
    async with ours.changing(DEFAULT):
        for seconds in (10, 11):
            assert (await ours.policies(DEFAULT)).message_ttl_seconds == seconds - 1
            await ours.set_policies(DEFAULT, NamespacePolicies(message_ttl_seconds=seconds))
    assert (await theirs.policies(DEFAULT)).message_ttl_seconds == 11


async def test_two_brokers_may_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = MemoryMetadata()
    get = metadata.get

    async def slow(path: str) -> Versioned | None:
        found = await get(path)
        await trio.testing.wait_all_tasks_blocked()
        return found

    monkeypatch.setattr(metadata, "get", slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(opened, metadata)
        nursery.start_soon(opened, metadata)
    found = await get(f"/admin/policies/{DEFAULT}")
    assert found is not None
    assert found.version == 0


async def test_properties_of_a_topic_stay_when_it_grows() -> None:
    metadata = MemoryMetadata()
    catalog = await opened(metadata)
    await catalog.create_partitioned(A, 2)
    path = f"/admin/partitioned-topics/{A.managed_ledger}"
    await overwrite(metadata, path, b'{"partitions": 2, "properties": {"a": "b"}}')
    await catalog.grow_partitioned(A, 3)
    found = await metadata.get(path)
    assert found is not None
    assert found.value == b'{"partitions":3,"properties":{"a":"b"}}'


async def test_a_namespace_is_changed_by_one_at_a_time() -> None:
    catalog = await opened()
    other = NamespaceName("public", "other")
    inside: list[NamespaceName] = []

    async def change(namespace: NamespaceName) -> None:
        async with catalog.changing(namespace):
            assert namespace not in inside
            inside.append(namespace)
            await trio.testing.wait_all_tasks_blocked()
            inside.remove(namespace)

    async with trio.open_nursery() as nursery:
        for namespace in (DEFAULT, DEFAULT, other):
            nursery.start_soon(change, namespace)
    assert catalog._read == {}
    assert not any(namespace in catalog._turns for namespace in (DEFAULT, other))
