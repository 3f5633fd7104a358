"""Topics that are not loaded and may have a part in transactions, found by their stored records.

A log says in its properties whether it ever had a transaction
(`core/topic/transaction_buffer.py`). What transactions acknowledge in a subscription is in the last
snapshot of its cursor: after a clean close that is in the cursor's record, and otherwise in a
ledger, which only loading the topic reads.

Invariant: a topic that is left out is loaded, or has nothing of a transaction.
"""

from __future__ import annotations

import logging

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import Corrupted, InvalidName
from magnetar.core.kernel.names import MANAGED_LEDGERS, PERSISTENT, TopicName
from magnetar.core.ledger import formats
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.topic.transaction_buffer import TRANSACTIONAL
from magnetar.core.transactions.topic_host import TopicHost

log = logging.getLogger(__name__)


async def unloaded_topics(broker: TopicHost) -> list[TopicName]:
    """Their names, in order."""
    metadata, found = broker.metadata, list[TopicName]()
    for tenant in await metadata.children(MANAGED_LEDGERS):
        for namespace in await metadata.children(f"{MANAGED_LEDGERS}/{tenant}"):
            folder = f"{tenant}/{namespace}/{PERSISTENT}"
            stored = await metadata.children(f"{MANAGED_LEDGERS}/{folder}")
            async for encoded in Cooperative(stored):
                try:
                    name = TopicName.of_managed_ledger(f"{folder}/{encoded}")
                except InvalidName:
                    continue  # another broker's log, which is no topic here
                if name.internal or name.full in broker.topics:
                    continue
                if await _may_have_part(metadata, name):
                    found.append(name)
    return found


async def _may_have_part(metadata: MetadataStore, name: TopicName) -> bool:
    path = f"{MANAGED_LEDGERS}/{name.managed_ledger}"
    stored = await metadata.get(path)
    if stored is None:
        return False
    try:
        if TRANSACTIONAL in formats.decode_managed_ledger(stored.value).properties:
            return True
        for cursor in await metadata.children(path):
            one = await metadata.get(f"{path}/{cursor}")
            if one is not None:
                info = formats.decode_cursor(one.value)
                if info.cursors_ledger_id >= 0 or info.snapshot.pending:
                    return True
    except Corrupted as error:  # whoever loads it hears that
        log.warning("%s: not asked for its transactions: %s", name, error)
    return False
