"""The BookKeeper cluster that the topics of a gateway are stored in.

Ids of ledgers mean something within one cluster only. With another one, or the same after it was
formatted, ledgers of topics are missing, or are those of somebody else, and would leave the lists
of topics.

Invariants: once a gateway has served these metadata, none serves them over another cluster, until
an operator changes the node. And the first one serves no topics of which the cluster has nothing
(`topic_ledgers.py`).
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.operator_error import OperatorError
from magnetar.storage.topic_ledgers import TopicLedgers

INSTANCE: Final = "/magnetar/bookkeeper-instance"
"""The instance id of the cluster."""


async def keep_to(
    metadata: MetadataStore, cluster: BookKeeperCluster, topics: TopicLedgers
) -> None:
    """Note the cluster if none is yet; an error if it is not that of the topics. Called under the
    lease.
    """
    ours = cluster.instance_id or ""
    found = await metadata.get(INSTANCE)
    if found is None:
        if (missing := await topics.missing()) is not None:
            raise OperatorError(
                f"the BookKeeper cluster {cluster.root}, {ours!r}, has none of the ledgers that "
                f"topics here name, such as {missing.ledger_id} of {missing.topic}: "
                f"{_advice(ours)}"
            )
        await metadata.put(INSTANCE, ours.encode(), ABSENT)
    elif found.value != ours.encode():
        raise OperatorError(
            f"topics here are stored in the BookKeeper cluster {found.value.decode()!r}, and "
            f"{cluster.root} is {ours!r}: {_advice(ours)}"
        )


def _advice(instance_id: str) -> str:
    return (
        "their ledgers are not there, and would be given up. Correct --bookkeeper or --metadata; "
        f"or, if they may be given up, have the node {INSTANCE} of the metadata say {instance_id!r}"
    )
