"""The BookKeeper cluster that the topics of a gateway are stored in.

Ids of ledgers mean something within one cluster only. With another one, or the same after it was
formatted, ledgers of topics are missing, or are those of somebody else, and would leave the lists
of topics.

Invariant: once a gateway has served these metadata, none serves them over another cluster, until
an operator deletes the node.
"""

from __future__ import annotations

from typing import Final

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.operator_error import OperatorError

INSTANCE: Final = "/magnetar/bookkeeper-instance"
"""The instance id of the cluster."""


async def keep_to(metadata: MetadataStore, cluster: BookKeeperCluster) -> None:
    """Note the cluster if none is yet; an error if it is another one. Called under the lease."""
    ours = (cluster.instance_id or "").encode()
    found = await metadata.get(INSTANCE)
    if found is None:
        await metadata.put(INSTANCE, ours, ABSENT)
    elif found.value != ours:
        raise OperatorError(
            f"topics here are stored in the BookKeeper cluster {found.value.decode()!r}, and "
            f"{cluster.root} is {ours.decode()!r}: their ledgers are not there, and would be given "
            f"up. Correct --bookkeeper or --metadata; or, if they may be given up, delete the node "
            f"{INSTANCE} of the metadata"
        )
