"""What a bookie asks about ledgers of whoever has their metadata: a port of the storage tier.

A whole server asks its own metadata store (`client/catalog.py`), a bookie of a cluster the
cluster's (`cluster/ledgers.py`). A bookie whose clients keep their metadata where it cannot see
them has no catalog: it takes no ledger for deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class LedgerCatalog(Protocol):
    """See the module's docstring. Each method raises rather than guess."""

    async def deleted(self, ledger_ids: Sequence[int]) -> list[int]:
        """Those of these ledgers that certainly are deleted.

        They were stored before this call, so that whatever is created meanwhile is none of them.
        """
        ...

    async def last_entries(self) -> Mapping[int, int] | None:
        """The last entry of each ledger, -1 for those that are not closed; None if not all that are
        stored here are known, or not all of an ensemble's entries are stored here.
        """
        ...

    async def owner(self, ledger_id: int) -> str:
        """Who uses a ledger, for the log; `LedgerNotFound` if it is deleted."""
        ...
