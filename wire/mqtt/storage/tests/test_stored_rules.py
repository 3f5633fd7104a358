"""The record of mapping rules: what is stored, and who may replace it."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import BadVersion, Corrupted
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.wire.mqtt.mapping.rules import MappingRule
from magnetar.wire.mqtt.storage.stored_rules import PATH, RulesRecord, StoredRules

NAMESPACE = NamespaceName.parse("public/default")
RULES = (MappingRule("a/#", "a"), MappingRule("b", "{each}"))


async def test_what_is_stored_is_loaded() -> None:
    metadata = MemoryMetadata()
    stored = StoredRules(metadata, NAMESPACE)
    assert await stored.load() == RulesRecord()
    record = RulesRecord(1, RULES, RULES, ("persistent://public/default/a",), RULES)
    await stored.store(RulesRecord())
    await stored.store(record)
    again = StoredRules(metadata, NAMESPACE)
    assert await again.load() == record
    other = StoredRules(metadata, NamespaceName.parse("public/other"))
    assert await other.load() == RulesRecord()


async def test_a_change_states_the_version_that_it_replaces() -> None:
    metadata = MemoryMetadata()
    first, second = StoredRules(metadata, NAMESPACE), StoredRules(metadata, NAMESPACE)
    await first.load()
    await second.load()
    await first.store(RulesRecord(1, RULES))
    with pytest.raises(BadVersion):
        await second.store(RulesRecord())
    assert (await StoredRules(metadata, NAMESPACE).load()).rules == RULES
    first.check_version(1)
    first.check_version(None)
    with pytest.raises(BadVersion):
        first.check_version(0)


async def test_a_damaged_record_is_told() -> None:
    metadata = MemoryMetadata()
    await metadata.put(f"{PATH}/{NAMESPACE}", b'{"rules":1}', ABSENT)
    with pytest.raises(Corrupted):
        await StoredRules(metadata, NAMESPACE).load()
