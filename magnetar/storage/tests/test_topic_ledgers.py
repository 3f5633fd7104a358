"""Which clusters have ledgers that topics name."""

import pytest

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.format.ledger_metadata import OWNER
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.ledger.formats import (
    LedgerEntryInfo,
    ManagedLedgerInfo,
    encode_managed_ledger,
)
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import overwrite
from magnetar.storage import topic_ledgers
from magnetar.storage.topic_ledgers import LEDGERS_OF_A_TOPIC, MissingLedger, TopicLedgers

ONE, TWO = "public/default/persistent/one", "public/default/persistent/two"


class Metadata(MemoryMetadata):
    """With a cluster in it."""

    cluster: BookKeeperCluster

    async def name(self, topic: str, *ledgers: int, offload: bytes = b"") -> None:
        """Have a topic list ledgers."""
        listed = [LedgerEntryInfo(each, offload_context=offload) for each in ledgers]
        data = encode_managed_ledger(ManagedLedgerInfo(ledgers=listed))
        await self.put(f"/managed-ledgers/{topic}", data, ABSENT)

    async def store(self, ledger_id: int, owner: str = "") -> None:
        ledger = LedgerMetadata(quorumSize=1, ensembleSize=1, length=0, state=LedgerMetadata.OPEN)
        ledger.segment.add(firstEntryId=0, ensembleMember=["b:1"])
        if owner:
            ledger.customMetadata.add(key=OWNER, value=owner.encode())
        await ClusterLedgers(self, self.cluster).create(ledger_id, ledger)

    async def missing(self) -> MissingLedger | None:
        return await TopicLedgers(self, ClusterLedgers(self, self.cluster)).missing()


@pytest.fixture
async def metadata() -> Metadata:
    found = Metadata()
    found.cluster = await initialize_cluster(found, "one")
    return found


async def test_without_topics_any_cluster_will_do(metadata: Metadata) -> None:
    assert await metadata.missing() is None
    await metadata.name(ONE)
    await metadata.put(f"/managed-ledgers/{ONE}/cursor", b"\x08\x07", ABSENT)
    assert await metadata.missing() is None, "a topic without ledgers, and a cursor"


async def test_one_ledger_that_is_there_is_enough(metadata: Metadata) -> None:
    await metadata.name(ONE, 1, 2)
    await metadata.name(TWO, 3)
    assert await metadata.missing() == MissingLedger(ONE, 2)
    await metadata.store(3, TWO)
    assert await metadata.missing() is None


async def test_a_ledger_of_another_topic_is_none_of_this_one(metadata: Metadata) -> None:
    await metadata.name(ONE, 1)
    await metadata.store(1, TWO)
    assert await metadata.missing() == MissingLedger(ONE, 1)


async def test_a_ledger_that_names_nobody_is_taken_for_it(metadata: Metadata) -> None:
    await metadata.name(ONE, 1)
    await metadata.store(1)
    assert await metadata.missing() is None


async def test_what_is_offloaded_or_makes_no_sense_tells_nothing(metadata: Metadata) -> None:
    await metadata.name(ONE, 1, offload=b"\x08\x01")
    await metadata.put(f"/managed-ledgers/{TWO}", b"\xff", ABSENT)
    assert await metadata.missing() is None
    await metadata.name("public/default/persistent/three", 3)
    await metadata.store(3, TWO)
    await overwrite(metadata, metadata.cluster.ledger(3), b"makes no sense")
    assert await metadata.missing() is None


@pytest.mark.parametrize("limit", ["NODES_MAX", "TOPICS_MAX"])
async def test_it_is_not_looked_for_ever(
    metadata: Metadata, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = range(LEDGERS_OF_A_TOPIC + 1)
    await metadata.name(ONE, *ids)
    await metadata.store(0, ONE)  # the oldest of one more than are looked at
    await metadata.name(TWO, 9)
    await metadata.store(9, TWO)
    assert await metadata.missing() is None
    monkeypatch.setattr(topic_ledgers, limit, {"NODES_MAX": 5, "TOPICS_MAX": 1}[limit])
    assert await metadata.missing() == MissingLedger(ONE, ids[-1])
