"""Ledgers and bookies of a cluster, read from ZooKeeper by kazoo's own client, which blocks.

It only reads, and takes part in nothing: no session of it means anything to others. What is written
is `core/metadata/zookeeper/`.
"""

from __future__ import annotations

from typing import Final, Self

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from magnetar.bookie.format import layout
from magnetar.bookie.format.service_info import READ_ONLY
from magnetar.bookie.reading.sources import Address, address_in
from magnetar.core.kernel.errors import LedgerNotFound, NotFound, StorageFailed
from magnetar.core.metadata.zookeeper import addresses, names

TIMEOUT_SECONDS: Final = 10.0


class ZooKeeperLedgers:
    """The `LedgerSource` of a cluster; it ends with its `with` block."""

    def __init__(self, uri: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """`uri` is BookKeeper's metadataServiceUri, or Pulsar's metadataStoreUrl."""
        where = addresses.parse(uri)
        self._root = names.encode(where.root + where.ledgers)
        self._timeout_seconds = timeout_seconds
        self._client = KazooClient(hosts=where.servers, timeout=timeout_seconds, read_only=True)
        try:
            self._client.start(timeout_seconds)
        except KazooTimeoutError:
            self.close()
            raise StorageFailed(
                f"no ZooKeeper answers at {where.servers} within {timeout_seconds:g} s"
            ) from None
        try:
            self._layout = layout.decode(self._layout_node())
        except BaseException:
            self.close()
            raise

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

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
