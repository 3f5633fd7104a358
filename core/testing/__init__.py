"""Verified fakes and playbooks for tests, ours and those of embedders."""

from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.ledgers import MemoryLedgers

__all__ = ["FixedClock", "MemoryLedgers", "MemoryMetadata"]
