"""The MetadataStore on a real ZooKeeper: the port's contract, and how it stands in the tree."""

import itertools

import pytest
import trio
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, Invalid, StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import (
    VALUE_BYTES_MAX,
    VALUES_AT_ONCE,
    open_zookeeper,
)
from magnetar.core.policy.values import SchemaStrategy
from magnetar.core.ports.metadata_store import ABSENT, Versioned
from magnetar.core.schema.registry import SchemaRegistry
from magnetar.core.schema.schema import SchemaKind, TopicSchema

pytest.register_assert_rewrite("magnetar.core.ports.tests.contract_metadata_store")

from magnetar.core.ports.tests import contract_metadata_store as contract  # noqa: E402 (after the rewrite)

pytestmark = [pytest.mark.java]
ROOTS = itertools.count()


@pytest.fixture
def root() -> str:
    return f"/root-{next(ROOTS)}"


@pytest.fixture
def address(zookeeper, root):
    return parse(f"zk:{zookeeper.address}{root}")


@pytest.fixture
def peer(zookeeper):
    """Somebody else in the same tree."""
    client = KazooClient(zookeeper.address)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_contract(check: contract.Check, address) -> None:
    async with open_zookeeper(address) as store:
        await check(store)


async def test_many_values_at_once(address, peer, root) -> None:
    """Those that are there, of which one may not be read by us."""
    async with open_zookeeper(address) as store:
        values = {f"/n/{number}": b"%d" % number for number in range(VALUES_AT_ONCE + 1)}
        async with trio.open_nursery() as nursery:
            for path, value in values.items():
                nursery.start_soon(store.put, path, value, ABSENT)
        assert await store.values([*values, "/n", "/n/none", "/n/0/none"]) == values
        assert await store.values([]) == {}
        peer.create(f"{root}/n/theirs", b"", acl=[make_digest_acl("them", "secret", all=True)])
        with pytest.raises(StorageFailed, match="NoAuthError"):
            await store.values(["/n/0", "/n/theirs"])


async def test_only_what_leads_somewhere_has_no_data(address, peer, root) -> None:
    async with open_zookeeper(address) as store:
        await store.put("/a/b/c", b"", ABSENT)
        assert peer.get(f"{root}/a/b")[0] is None
        assert peer.get(f"{root}/a/b/c")[0] == b""
        await store.put("/a", b"1", ABSENT)
        await store.delete("/a/b/c", 0)
        assert peer.get_children(f"{root}/a") == [], "what led there is gone"
        version = (await store.get("/a")).version
        peer.create(f"{root}/a/theirs", b"")
        await store.delete("/a", version)
        assert await store.get("/a") is None
        assert peer.get(f"{root}/a")[0] is None
        assert await store.get("/a/theirs") == Versioned(b"", 0)


async def test_nothing_is_created_before_the_first_write(zookeeper, peer, root) -> None:
    """A path that is a typing error leaves no trace."""
    async with open_zookeeper(parse(f"zk:{zookeeper.address}{root}/deep/down")) as store:
        assert await store.get("/a") is None
        assert await store.children("/") == []
        await store.sync()
        assert peer.exists(root) is None
        await store.put("/a", b"x", ABSENT)
        assert peer.get(f"{root}/deep/down/a")[0] == b"x"
        assert await store.children("/") == ["a"]


async def test_numbers_are_those_of_apaches_generator(address, peer, root) -> None:
    async with open_zookeeper(address) as store:
        assert [await store.next("/ledgers/idgen") for _ in range(3)] == [0, 1, 2]
        theirs = peer.create(f"{root}/ledgers/idgen/ID-", b"", ephemeral=True, sequence=True)
        assert theirs == f"{root}/ledgers/idgen/ID-0000000003"
        peer.delete(theirs)
        assert await store.next("/ledgers/idgen") == 4
        await store.sync()
        assert peer.get_children(f"{root}/ledgers/idgen") == []
        await store.put("/ledgers/x", b"", ABSENT)
        await store.delete("/ledgers/x", 0)
        assert await store.next("/ledgers/idgen") == 5, "the counter stays"


async def test_a_value_that_zookeeper_would_not_take(address) -> None:
    async with open_zookeeper(address) as store:
        await store.put("/most", bytes(VALUE_BYTES_MAX), ABSENT)
        with pytest.raises(Invalid, match="1000000 bytes, not 1000001"):
            await store.put("/more", bytes(VALUE_BYTES_MAX + 1), ABSENT)
        await store.lease("/lease", b"", lambda: None)
        with pytest.raises(StorageFailed, match="NoChildrenForEphemerals"):
            await store.put("/lease/below", b"", ABSENT)


async def test_two_processes(address) -> None:
    """Two sessions stand for them: each sees and is refused what the other has."""
    heard: list[str] = []
    async with open_zookeeper(address) as one, open_zookeeper(address) as two:
        two.watch("/", heard.append)
        await two.sync()
        assert await one.put("/a", b"1", ABSENT) == 0
        with pytest.raises(AlreadyExists):
            await two.put("/a", b"2", ABSENT)
        assert await two.put("/a", b"2", 0) == 1
        with pytest.raises(BadVersion):
            await one.put("/a", b"3", 0)
        await one.lease("/lease", b"one", lambda: None)
        with pytest.raises(AlreadyExists):
            await two.lease("/lease", b"two", lambda: None)
        await one.sync()
        await two.sync()
        assert heard == ["/a", "/a", "/lease"]
        await one.close()
        with trio.fail_after(10):
            while await two.get("/lease") is not None:
                await trio.lowlevel.checkpoint()
        await two.lease("/lease", b"two", lambda: None)


SCHEMA_BYTES_MAX = 900_000
"""The highest value of `broker.schema_bytes_max`."""


async def test_two_brokers_add_schemas(address) -> None:
    """Each adds twenty to one topic, one as large as may be; both have the same versions then."""
    name, any_order = TopicName.parse("t"), SchemaStrategy.ALWAYS_COMPATIBLE
    async with open_zookeeper(address) as one, open_zookeeper(address) as other:
        registries = [
            SchemaRegistry(store, SystemClock(), SCHEMA_BYTES_MAX) for store in (one, other)
        ]
        for registry in registries:
            registry.open()

        async def add(registry: SchemaRegistry, first: int) -> None:
            for number in range(first, first + 20):
                definition = b'{"type": "fixed", "name": "F", "size": %d}' % number
                schema = TopicSchema(SchemaKind.AVRO, definition)
                await registry.add(name, schema, any_order)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add, registries[0], 0)
            nursery.start_soon(add, registries[1], 10)
        padding = b" " * (SCHEMA_BYTES_MAX - len(b'"int"{}'))
        largest = TopicSchema(SchemaKind.AVRO, b'"int"' + padding)
        assert largest.size == SCHEMA_BYTES_MAX
        assert await registries[0].add(name, largest, any_order) == 30
        await other.sync()
        seen = [
            [(version, stored.schema) for version, stored in await registry.all_of(name)]
            for registry in registries
        ]
        assert seen[0] == seen[1]
        assert [version for version, _ in seen[0]] == list(range(31))
        assert len({schema.definition for _, schema in seen[0]}) == 31


async def test_no_zookeeper_there() -> None:
    with pytest.raises(StorageFailed, match="no ZooKeeper answers at"):
        async with open_zookeeper(parse("zk:127.0.0.1:1"), timeout_seconds=0.1):
            pytest.fail("there is none")
