"""The catalog: clusters, tenants, namespaces, partitioned topics and their policies.

It is stored in the metadata store, at Pulsar's paths and as its JSON (`/admin/policies`,
`PulsarResources.java` of 4.2), and cached here. It has no owner: every broker of a cluster may
change it. So a change states the version that it is based on, and is refused (`BadVersion`) if
another writer was faster; the caller reads again. A watch removes from the cache what other brokers
change.

Invariant: the cache holds what the store returned last; a write reaches the store first, and
replaces exactly the value that it is based on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec import Struct

from magnetar.core.kernel.cooperation import KeyedLocks
from magnetar.core.kernel.errors import (
    AlreadyExists,
    BadVersion,
    Invalid,
    NamespaceNotFound,
    NotAllowed,
    NotFound,
)
from magnetar.core.kernel.names import (
    SYSTEM_NAMESPACE,
    NamespaceName,
    TopicName,
    check_entity,
)
from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import (
    Effective,
    NamespacePolicies,
    TopicPolicies,
    decode,
    effective,
    encode,
)
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore, Versioned

CLUSTERS = "/admin/clusters"
TENANTS = "/admin/policies"
SYSTEM_TENANT = NamespaceName.parse(SYSTEM_NAMESPACE).tenant
PARTITIONED = "/admin/partitioned-topics"
TOPIC_POLICIES = "/magnetar/topic-policies"
"""Pulsar stores these in a system topic (PIP-39); here they are records like all others."""
WATCHED = ("/admin", TOPIC_POLICIES)
PRODUCER_NAMES = "/counters/producer-name"
PARTITIONS_MAX = 10_000
CACHED_PATHS_MAX = 50_000


class Tenant(Struct, frozen=True, rename="camel"):
    """A tenant's administrators and clusters."""

    admin_roles: list[str] = []
    allowed_clusters: list[str] = []


class Cluster(Struct, frozen=True, rename="camel"):
    """The addresses of a cluster; other fields of tools are stored as they are."""

    service_url: str = ""
    service_url_tls: str = ""
    broker_service_url: str = ""
    broker_service_url_tls: str = ""


class Partitioned(Struct, frozen=True):
    """A partitioned topic."""

    partitions: int = 0


class Described(Struct, frozen=True):
    """The properties of a partitioned topic, in the same record."""

    properties: dict[str, str] = {}


class Catalog:
    """See the module's docstring."""

    def __init__(self, metadata: MetadataStore, defaults: Effective, cluster: str) -> None:
        self.cluster = cluster
        self.defaults = defaults
        self.levels = levels_of(type(defaults))
        self._metadata = metadata
        self._cache: dict[str, Versioned | None] = {}
        """Records by path; None if there is none. Clients may request any number of unknown names,
        so the cache is limited; the oldest entry is removed first."""
        self._turns: KeyedLocks[NamespaceName] = KeyedLocks()
        """Locks of the namespaces that are being changed."""
        self._read: dict[NamespaceName, dict[str, int]] = {}
        """For these: the version of each path when the change first read it."""
        self.changes = 0
        """Counts changes, so that nothing read before one is cached or applied after it."""

    async def open(self) -> None:
        """Create the tenant and namespaces that every client expects."""
        for prefix in WATCHED:
            self._metadata.watch(prefix, self._forget)
        for path, value in (
            (f"{CLUSTERS}/{self.cluster}", encode(Cluster())),
            (f"{TENANTS}/public", encode(Tenant(allowed_clusters=[self.cluster]))),
            (
                f"{TENANTS}/public/default",
                encode(NamespacePolicies(replication=[self.cluster])),
            ),
            # A client that uses transactions requests a topic in there before it requests a
            # coordinator: without the namespace it never learns that transactions are off.
            (f"{TENANTS}/{SYSTEM_TENANT}", encode(Tenant(allowed_clusters=[self.cluster]))),
            (
                f"{TENANTS}/{SYSTEM_NAMESPACE}",
                encode(NamespacePolicies(replication=[self.cluster])),
            ),
        ):
            if await self._get(path) is None:
                with suppress(AlreadyExists):  # another broker starts, too
                    await self._put(path, value, ABSENT)

    @asynccontextmanager
    async def changing(self, namespace: NamespaceName) -> AsyncIterator[None]:
        """Change the policies of a namespace and its topics, one task at a time.

        A record is read and written as a whole, so of two changes at a time one would be lost. In
        this broker they wait for each other. A change by another broker is not overwritten: writes
        expect the versions that were first read in this block.
        """
        async with self._turns.at(namespace):
            self._read[namespace] = {}
            try:
                yield
            finally:
                del self._read[namespace]

    def _forget(self, path: str) -> None:
        self.changes += 1
        self._cache.pop(path, None)
        if path in WATCHED:  # anything below may have changed: the port joins reports
            self._cache.clear()

    def _keep(self, path: str, found: Versioned | None) -> None:
        while len(self._cache) >= CACHED_PATHS_MAX:
            del self._cache[next(iter(self._cache))]
        self._cache[path] = found

    async def _find(self, path: str, namespace: NamespaceName | None = None) -> Versioned | None:
        """The record at a path; with `namespace`, its version counts for a change."""
        try:
            found = self._cache[path]
        except KeyError:
            changes = self.changes
            found = await self._metadata.get(path)
            if changes == self.changes:
                self._keep(path, found)
        if namespace in self._read:
            self._read[namespace].setdefault(path, version_of(found))
        return found

    async def _get(self, path: str, namespace: NamespaceName | None = None) -> bytes | None:
        found = await self._find(path, namespace)
        return found.value if found is not None else None

    async def _put(self, path: str, value: bytes, expected: int) -> None:
        try:
            await self._metadata.put(path, value, expected)
        finally:
            self._forget(path)

    async def _change(self, path: str, value: bytes, namespace: NamespaceName) -> None:
        """Write over the version that the change of the namespace read, or else reads now."""
        expected = version_of(await self._find(path, namespace))
        read = self._read.get(namespace, {})
        try:
            await self._put(path, value, read.get(path, expected))
        except AlreadyExists as error:
            raise BadVersion(f"{path} has been written by another broker") from error
        read.pop(path, None)

    async def _delete(self, path: str) -> None:
        """Delete a record, even if it changes meanwhile."""
        while (found := await self._find(path)) is not None:
            try:
                await self._metadata.delete(path, found.version)
            except (BadVersion, NotFound):
                continue
            finally:
                self._forget(path)
            return

    # -- clusters -----------------------------------------------------------------------------

    async def clusters(self) -> list[str]:
        return await self._metadata.children(CLUSTERS)

    async def get_cluster(self, name: str) -> bytes:
        """The JSON of a cluster, as stored."""
        found = await self._get(f"{CLUSTERS}/{name}")
        if found is None:
            raise NotFound(f"cluster {name} does not exist")
        return found

    async def put_cluster(self, name: str, body: bytes, *, create: bool) -> None:
        """Create or change a cluster; all fields that tools send are stored."""
        check_entity("cluster", name)
        decode(body, Cluster, "not a cluster")
        path = f"{CLUSTERS}/{name}"
        if not create:
            await self.get_cluster(name)
        expected = ABSENT if create else version_of(await self._find(path))
        await self._put(path, body or encode(Cluster()), expected)

    async def delete_cluster(self, name: str) -> None:
        await self.get_cluster(name)
        await self._delete(f"{CLUSTERS}/{name}")

    # -- tenants ------------------------------------------------------------------------------

    async def tenants(self) -> list[str]:
        return await self._metadata.children(TENANTS)

    async def get_tenant(self, name: str) -> Tenant:
        found = await self._get(f"{TENANTS}/{name}")
        if found is None:
            raise NotFound(f"tenant {name} does not exist")
        return decode(found, Tenant, "not a tenant")

    async def put_tenant(self, name: str, tenant: Tenant, *, create: bool) -> None:
        """Create a tenant or change one."""
        check_entity("tenant", name)
        if not tenant.allowed_clusters or "" in map(str.strip, tenant.allowed_clusters):
            raise NotAllowed("Clusters can not be empty")
        if not set(tenant.allowed_clusters) <= set(await self.clusters()):
            raise NotAllowed("Clusters do not exist")
        if any(role != role.strip() for role in tenant.admin_roles):
            raise NotAllowed("AdminRoles contains whitespace in the beginning or end.")
        path = f"{TENANTS}/{name}"
        if not create:
            await self.get_tenant(name)
        expected = ABSENT if create else version_of(await self._find(path))
        await self._put(path, encode(tenant), expected)

    async def delete_tenant(self, name: str) -> None:
        """Delete an empty tenant."""
        await self.get_tenant(name)
        if await self.namespaces(name):
            raise AlreadyExists(f"tenant {name} still has namespaces")
        await self._delete(f"{TENANTS}/{name}")

    # -- namespaces ---------------------------------------------------------------------------

    async def namespaces(self, tenant: str) -> list[str]:
        """Full names of a tenant's namespaces."""
        await self.get_tenant(tenant)
        return [
            f"{tenant}/{local}" for local in await self._metadata.children(f"{TENANTS}/{tenant}")
        ]

    async def has_namespace(self, name: NamespaceName) -> bool:
        return await self._get(f"{TENANTS}/{name}") is not None

    async def policies(self, name: NamespaceName) -> NamespacePolicies:
        found = await self._get(f"{TENANTS}/{name}", name)
        if found is None:
            raise NamespaceNotFound(f"namespace {name} does not exist")
        policies: NamespacePolicies = decode(found, self.levels.namespace)
        return policies

    async def create_namespace(self, name: NamespaceName, policies: NamespacePolicies) -> None:
        tenant = await self.get_tenant(name.tenant)
        if not policies.replication:
            clusters = [self.cluster]
            policies = msgspec.structs.replace(policies, replication=clusters)
        for cluster in policies.replication:
            if tenant.allowed_clusters and cluster not in tenant.allowed_clusters:
                raise NotAllowed(f"cluster {cluster} is not allowed for tenant {name.tenant}")
        await self._put(f"{TENANTS}/{name}", encode(policies), ABSENT)

    async def set_policies(self, name: NamespaceName, policies: NamespacePolicies) -> None:
        await self.policies(name)
        await self._change(f"{TENANTS}/{name}", encode(policies), name)

    async def delete_namespace(self, name: NamespaceName) -> None:
        """Delete a namespace, whose topics the broker has deleted before."""
        await self.policies(name)
        await self._delete(f"{TENANTS}/{name}")

    # -- topics -------------------------------------------------------------------------------

    async def effective(self, name: TopicName) -> Effective:
        """The policies in force for one topic."""
        namespace = await self.policies(name.namespace)
        topic = await self.topic_policies(name)
        return effective(self.defaults, namespace, topic, self.cluster)

    async def topic_policies(self, name: TopicName) -> TopicPolicies:
        found = await self._get(f"{TOPIC_POLICIES}/{name.base.managed_ledger}", name.namespace)
        policies: TopicPolicies = decode(found or b"", self.levels.topic)
        return policies

    async def set_topic_policies(self, name: TopicName, policies: TopicPolicies) -> None:
        path = f"{TOPIC_POLICIES}/{name.base.managed_ledger}"
        await self._change(path, encode(policies), name.namespace)

    async def partitions(self, name: TopicName) -> int:
        """The number of partitions; 0 for a topic without any, or that does not exist."""
        found = await self._get(f"{PARTITIONED}/{name.base.managed_ledger}", name.namespace)
        return 0 if found is None else _partitions_in(found)

    async def partitioned_of(self, namespace: NamespaceName) -> dict[TopicName, int]:
        """The partitioned topics of a namespace and how many partitions each has."""
        found: dict[TopicName, int] = {}
        for domain in ("persistent", "non-persistent"):
            for encoded in await self._metadata.children(f"{PARTITIONED}/{namespace}/{domain}"):
                name = TopicName.of_managed_ledger(f"{namespace}/{domain}/{encoded}")
                found[name] = await self.partitions(name)
        return found

    async def properties(self, name: TopicName) -> dict[str, str]:
        """Those of a partitioned topic, which its partitions do not have."""
        found = await self._get(f"{PARTITIONED}/{name.base.managed_ledger}", name.namespace)
        return {} if found is None else decode(found, Described).properties

    async def create_partitioned(
        self, name: TopicName, partitions: int, properties: dict[str, str] | None = None
    ) -> None:
        _check_partitions(partitions)
        if name.partitioned:
            raise Invalid(f"{name} is itself a partition")
        await self.policies(name.namespace)
        node = {"partitions": partitions, **({"properties": properties} if properties else {})}
        path = f"{PARTITIONED}/{name.managed_ledger}"
        await self._put(path, msgspec.json.encode(node), ABSENT)

    async def check_growth(self, name: TopicName, partitions: int) -> int:
        """The number of partitions; raises if it cannot be raised to that."""
        present = await self.partitions(name)
        _check_growth(name, present, partitions)
        return present

    async def grow_partitioned(self, name: TopicName, partitions: int) -> None:
        """Raise the number of partitions; it cannot be lowered, as in Pulsar and Kafka."""
        path = f"{PARTITIONED}/{name.managed_ledger}"
        found = await self._find(path)
        _check_growth(name, 0 if found is None else _partitions_in(found.value), partitions)
        assert found is not None
        node = msgspec.json.decode(found.value, type=dict[str, object])
        grown = msgspec.json.encode({**node, "partitions": partitions})  # its properties stay
        await self._put(path, grown, version_of(found))

    async def forget_topic(self, name: TopicName) -> None:
        """Delete the policies and the partition count of a deleted topic."""
        for prefix in (PARTITIONED, TOPIC_POLICIES):
            await self._delete(f"{prefix}/{name.managed_ledger}")

    async def new_producer_name(self) -> str:
        """A producer name that is never used again (`DistributedIdGenerator.java` of Pulsar)."""
        number = await self._metadata.next(PRODUCER_NAMES)
        return f"{self.cluster}-0-{number}"


def version_of(found: Versioned | None) -> int:
    """The version that a write over this record expects."""
    return ABSENT if found is None else found.version


def _partitions_in(record: bytes) -> int:
    return decode(record, Partitioned, "not a number of partitions").partitions


def _check_growth(name: TopicName, present: int, partitions: int) -> None:
    _check_partitions(partitions)
    if not present:
        raise NotFound(f"{name} is not a partitioned topic")
    if partitions <= present:
        raise Invalid(f"{name} has {present} partitions, the new number must be higher")


def _check_partitions(partitions: int) -> None:
    if not 0 < partitions <= PARTITIONS_MAX:
        raise Invalid(f"the number of partitions must be between 1 and {PARTITIONS_MAX}")
