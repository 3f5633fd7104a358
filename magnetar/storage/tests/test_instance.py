"""A gateway keeps to the cluster that its topics are stored in."""

import pytest

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format.layout import HIERARCHICAL
from magnetar.core.ledger.formats import (
    LedgerEntryInfo,
    ManagedLedgerInfo,
    encode_managed_ledger,
)
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import overwrite
from magnetar.operator_error import OperatorError
from magnetar.storage.instance import INSTANCE, keep_to
from magnetar.storage.topic_ledgers import TopicLedgers


def over(metadata: MemoryMetadata, cluster: BookKeeperCluster) -> TopicLedgers:
    return TopicLedgers(metadata, ClusterLedgers(metadata, cluster))


async def test_another_cluster_is_refused_until_the_node_says_so() -> None:
    metadata = MemoryMetadata()
    one = await initialize_cluster(metadata, "one")
    two = BookKeeperCluster("/chroot/ledgers", HIERARCHICAL, "two")
    await keep_to(metadata, one, over(metadata, one))
    await keep_to(metadata, one, over(metadata, one))
    with pytest.raises(OperatorError, match=f"'one', and /chroot/ledgers is 'two'.*{INSTANCE}"):
        await keep_to(metadata, two, over(metadata, two))
    await overwrite(metadata, INSTANCE, b"two")
    await keep_to(metadata, two, over(metadata, two))
    with pytest.raises(OperatorError):
        await keep_to(metadata, one, over(metadata, one))


async def test_a_cluster_without_an_instance_is_one_too() -> None:
    metadata = MemoryMetadata()
    nameless = BookKeeperCluster("/ledgers", HIERARCHICAL, None)
    other = BookKeeperCluster("/ledgers", HIERARCHICAL, "two")
    await keep_to(metadata, nameless, over(metadata, nameless))
    await keep_to(metadata, nameless, over(metadata, nameless))
    with pytest.raises(OperatorError):
        await keep_to(metadata, other, over(metadata, other))


async def test_the_first_start_over_a_cluster_without_the_ledgers_of_topics_is_refused() -> None:
    metadata = MemoryMetadata()
    one = await initialize_cluster(metadata, "one")
    named = ManagedLedgerInfo(ledgers=[LedgerEntryInfo(7)])
    path = "/managed-ledgers/public/default/persistent/t"
    await metadata.put(path, encode_managed_ledger(named), ABSENT)
    with pytest.raises(OperatorError, match=r"such as 7 of public/default/persistent/t.*say 'one'"):
        await keep_to(metadata, one, over(metadata, one))
    assert await metadata.get(INSTANCE) is None
    await metadata.put(INSTANCE, b"one", ABSENT)
    await keep_to(metadata, one, over(metadata, one))
