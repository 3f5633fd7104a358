"""Where readers learn of ledgers and of bookies: a port, and what a planner hands out.

`zookeeper.py` asks the cluster itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from magnetar.bookie.format import service_info
from magnetar.bookie.rpc.credentials import TICKET
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import LedgerNotFound

Address = tuple[str, int]


class LedgerSource(Protocol):
    """The metadata of ledgers, and the addresses of bookies."""

    def metadata(self, ledger_id: int) -> bytes:
        """The bytes of a ledger's metadata, as they are now; `LedgerNotFound` without."""
        ...

    def address(self, bookie: str) -> Address:
        """Where a bookie serves its clients; a `BrokerError` if nobody knows."""
        ...

    def proof(self, ledger_id: int) -> Authenticate | None:
        """What bookies are shown by who reads a ledger; None for nothing."""
        ...


class PlannedLedgers(Struct, frozen=True):
    """What a planner looked up for those who read: it can be pickled, and asks nobody."""

    ledgers: Mapping[int, bytes]
    addresses: Mapping[str, Address] = {}
    """Of bookies whose id is not their address."""
    tickets: Mapping[int, bytes] = {}
    """What bookies are shown, by ledger."""
    words: Authenticate | None = None
    """The same for ledgers without a ticket."""

    def metadata(self, ledger_id: int) -> bytes:
        try:
            return self.ledgers[ledger_id]
        except KeyError:
            raise LedgerNotFound(f"there is no ledger {ledger_id} in the plan") from None

    def address(self, bookie: str) -> Address:
        return self.addresses.get(bookie) or address_in(bookie, b"")

    def proof(self, ledger_id: int) -> Authenticate | None:
        ticket = self.tickets.get(ledger_id)
        return self.words if ticket is None else Authenticate(TICKET, ticket)


def address_in(bookie: str, published: bytes) -> Address:
    """The address in what a bookie publishes; without that, its id is its address."""
    endpoint = service_info.decode(bookie, published).rpc()
    return endpoint.host, endpoint.port
