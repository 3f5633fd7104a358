"""A gateway keeps to the cluster that its topics are stored in."""

import pytest

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.metadata import remove
from magnetar.operator_error import OperatorError
from magnetar.storage.instance import INSTANCE, keep_to


async def test_another_cluster_is_refused_until_the_node_is_deleted() -> None:
    metadata = MemoryMetadata()
    one = await initialize_cluster(metadata, "one")
    two = BookKeeperCluster("/chroot/ledgers", HIERARCHICAL, "two")
    await keep_to(metadata, one)
    await keep_to(metadata, one)
    with pytest.raises(OperatorError, match=f"'one', and /chroot/ledgers is 'two'.*{INSTANCE}"):
        await keep_to(metadata, two)
    await remove(metadata, INSTANCE)
    await keep_to(metadata, two)
    with pytest.raises(OperatorError):
        await keep_to(metadata, one)


async def test_a_cluster_without_an_instance_is_one_too() -> None:
    metadata = MemoryMetadata()
    await keep_to(metadata, BookKeeperCluster("/ledgers", HIERARCHICAL, None))
    await keep_to(metadata, BookKeeperCluster("/ledgers", HIERARCHICAL, None))
    with pytest.raises(OperatorError):
        await keep_to(metadata, BookKeeperCluster("/ledgers", HIERARCHICAL, "two"))
