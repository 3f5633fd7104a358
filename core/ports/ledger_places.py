"""What programs that read ledgers on their own have to know: where their entries are.

Spark's workers read from bookies, not through the broker: it looks up for them what each ledger's
metadata say, and where its bookies are. Nothing is fenced or recovered, so they may read only what
the broker tells them to be confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class LedgerPlaces(Protocol):
    """See the module's docstring."""

    async def metadata(self, ledger_ids: Sequence[int]) -> Mapping[int, bytes]:
        """The metadata of those ledgers that exist, as they are stored."""
        ...

    def bookies(self) -> Mapping[str, str]:
        """`host:port` of each bookie that runs, by its id; empty if none serves readers."""
        ...
