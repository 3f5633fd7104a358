"""Verified fakes and playbooks for tests, ours and those of embedders."""

from core.metadata.memory import MemoryMetadata
from core.testing.clock import FixedClock
from core.testing.ledgers import MemoryLedgers

__all__ = ["FixedClock", "MemoryLedgers", "MemoryMetadata"]
