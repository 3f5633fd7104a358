"""Ledgers and bookies of a cluster, read from ZooKeeper by kazoo's own client, which blocks.

It only reads, and takes part in nothing: no session of it means anything to others. What is written
is `core/metadata/zookeeper/`.
"""

from __future__ import annotations

import logging
from typing import Final, Self

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from magnetar.bookie.format import layout
from magnetar.bookie.format.service_info import READ_ONLY
from magnetar.bookie.reading.sources import Address, address_in
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import LedgerNotFound, NotFound, StorageFailed
from magnetar.core.metadata.zookeeper import addresses, names

TIMEOUT_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 2.0
"""How long nothing is said while the first connection is waited for."""
log = logging.getLogger(__name__)
kazoo_log = logging.getLogger(f"{__name__}.kazoo")
kazoo_log.setLevel(logging.CRITICAL)  # it tells of each attempt to connect, and errors say the rest


class ZooKeeperLedgers:
    """The `LedgerSource` of a cluster; it ends with its `with` block."""

    def __init__(
        self,
        uri: str,
        timeout_seconds: float = TIMEOUT_SECONDS,
        words: Authenticate | None = None,
    ) -> None:
        """`uri` is BookKeeper's metadataServiceUri, or Pulsar's metadataStoreUrl; `words` are what
        bookies are shown.
        """
        self._words = words
        where = addresses.parse(uri)
        self._root = names.encode(where.root + where.ledgers)
        self._timeout_seconds = timeout_seconds
        self._client = KazooClient(
            hosts=where.servers, timeout=timeout_seconds, read_only=True, logger=kazoo_log
        )
        if not self._connected(where.servers):
            self.close()
            raise StorageFailed(
                f"no ZooKeeper answers at {where.servers} within {timeout_seconds:g} s"
            )
        try:
            self._layout = layout.decode(self._layout_node())
        except BaseException:
            self.close()
            raise

    def _connected(self, servers: str) -> bool:
        """Whether there was a first connection in time."""
        connected = self._client.start_async()
        silent = min(SILENT_SECONDS, self._timeout_seconds)
        if connected.wait(silent):
            return True
        log.warning("waiting for ZooKeeper at %s", servers)
        return bool(connected.wait(self._timeout_seconds - silent))

    def _layout_node(self) -> bytes:
        found = self._get(f"{self._root}/LAYOUT")
        if found is None:
            raise NotFound(f"there is no BookKeeper cluster at {self._root}")
        return found

    def _get(self, node: str) -> bytes | None:
        """The data of a node; None if there is none."""
        try:
            answer = self._client.get_async(node).get(timeout=self._timeout_seconds)
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            raise StorageFailed(f"{node}: ZooKeeper says {error!r}") from error
        found: bytes = answer[0]
        return found

    def metadata(self, ledger_id: int) -> bytes:
        found = self._get(f"{self._root}/{self._layout.path_of(ledger_id)}")
        if found is None:
            raise LedgerNotFound(f"there is no ledger {ledger_id}")
        return found

    def address(self, bookie: str) -> Address:
        """A bookie that does not run has no address, but perhaps its id is one."""
        for parent in ("available", f"available/{READ_ONLY}"):
            published = self._get(f"{self._root}/{parent}/{bookie}")
            if published is not None:
                return address_in(bookie, published)
        return address_in(bookie, b"")

    def proof(self, ledger_id: int) -> Authenticate | None:
        return self._words

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
