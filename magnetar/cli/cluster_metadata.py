"""Commands that work on the metadata of a cluster: how they say which, and how they open it."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from magnetar.cli.flags import CONFIG_VARIABLE, load_settings
from magnetar.cli.printing import print_warnings, sentences

if TYPE_CHECKING:
    from magnetar.bookie.client.quorum.store import ClientMachine, ClusterClient
    from magnetar.bookie.cluster.cluster import BookKeeperCluster
    from magnetar.bookie.cluster.under_replication import UnderReplication
    from magnetar.core.metadata.zookeeper.addresses import ZooKeeperAddress
    from magnetar.core.metadata.zookeeper.store import ZooKeeperMetadata
    from magnetar.security.shown_credentials import ShownCredentials

URI_VARIABLE = "MAGNETAR_METADATA_URI"
Result = TypeVar("Result")


def uri_option() -> click.Option:
    return click.Option(
        ["--metadata-uri"],
        required=True,
        metavar="URI",
        envvar=URI_VARIABLE,
        help="The cluster's metadata, such as zk+hierarchical://HOST:2181/ledgers "
        f"(also {URI_VARIABLE}).",
    )


def in_cluster(
    uri: str, work: Callable[["ZooKeeperMetadata", "BookKeeperCluster"], Awaitable[Result]]
) -> Result:
    """What `work` returns, on a cluster that exists."""
    from magnetar.bookie.cluster import cluster as clusters

    async def find(store: "ZooKeeperMetadata", address: "ZooKeeperAddress") -> Result:
        return await work(
            store, await clusters.find(store, address.ledgers, address.layout, chroot=address.root)
        )

    return in_zookeeper(uri, find)


def in_zookeeper(
    uri: str, work: Callable[["ZooKeeperMetadata", "ZooKeeperAddress"], Awaitable[Result]]
) -> Result:
    """What `work` returns, where there may be no cluster yet."""
    import trio

    from magnetar.core.kernel.errors import BrokerError
    from magnetar.core.metadata.zookeeper.addresses import parse
    from magnetar.core.metadata.zookeeper.store import open_zookeeper

    async def run() -> Any:
        failure: BrokerError | None = None
        async with open_zookeeper(parse(uri)) as store:
            try:
                result = await work(store, parse(uri))
            except BrokerError as error:  # by itself, and not in a group
                failure = error
        if failure is not None:
            raise failure
        return result

    print_warnings()
    with sentences():
        found: Result = trio.run(run)
    return found


def shown_credentials() -> "ShownCredentials":
    """What bookies are shown, by the settings of the environment, and of its MAGNETAR_CONFIG."""
    from magnetar.security.shown_credentials import ShownCredentials

    settings = load_settings(os.environ.get(CONFIG_VARIABLE), {}).settings
    return ShownCredentials(settings.security)


@asynccontextmanager
async def cluster_client(
    store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
) -> AsyncIterator[tuple["ClusterClient", "ClientMachine"]]:
    """A client of the bookies, and what it runs on, for as long as the block lasts."""
    import random  # noqa: TID251  # this composes the ledger client

    from magnetar.bookie.client.quorum.settings import QuorumSettings
    from magnetar.bookie.client.quorum.store import ClientMachine, open_cluster_client
    from magnetar.bookie.machine.network import SystemNetwork
    from magnetar.core.kernel.clock import SystemClock
    from magnetar.core.kernel.errors import BrokerError

    network = shown_credentials().network(SystemNetwork())
    machine = ClientMachine(network, SystemClock(), random.Random())
    failure: BrokerError | None = None
    async with open_cluster_client(store, cluster, machine, QuorumSettings()) as client:
        try:
            yield client, machine
        except BrokerError as error:  # by itself, and not in a group
            failure = error
    if failure is not None:
        raise failure


@asynccontextmanager
async def replication_tools(
    store: "ZooKeeperMetadata", cluster: "BookKeeperCluster"
) -> AsyncIterator[tuple["ClusterClient", "UnderReplication"]]:
    """A client of the bookies, and the marks and locks of the ledgers that it repairs."""
    from magnetar.bookie.cluster.under_replication import UnderReplication

    marks = UnderReplication(store, cluster)
    await marks.prepare()
    async with cluster_client(store, cluster) as (client, _):
        yield client, marks
