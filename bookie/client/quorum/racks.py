"""Which rack each bookie is in, as the operator has written it at `/bookies`.

Pulsar's tools write it (`pulsar-admin bookies set-bookie-rack`), through a broker or a gateway
(`wire/http/admin/bookies.py`): JSON, of groups, of bookies, each with its rack
(`BookiesRackConfiguration`, `BookieRackAffinityMapping.java` of Pulsar 4.2):

    {"default": {"127.0.0.1:3181": {"rack": "/rack1", "hostname": "one"}}}

A bookie that is not there is in the default rack. While the store does not answer, or what is there
makes no sense, the last racks stay.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import msgspec
import trio

from magnetar.bookie.client.quorum.placement import DEFAULT_RACK
from magnetar.bookie.cluster.following import Following
from magnetar.core.ports.metadata_store import MetadataStore

PATH: Final = "/bookies"
log = logging.getLogger(__name__)


class BookieInRack(msgspec.Struct, frozen=True):
    """What is said of one bookie; its host name is for people."""

    rack: str = DEFAULT_RACK


def decode(value: bytes) -> Mapping[str, str]:
    """The racks, by bookie; `ValueError` if this makes no sense."""
    groups = msgspec.json.decode(value, type=dict[str, dict[str, BookieInRack]])
    return {
        bookie: "/" + found.rack.lstrip("/")
        for bookies in groups.values()
        for bookie, found in bookies.items()
    }


class Racks:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._racks: Mapping[str, str] = {}
        self._following = Following(store, PATH, self._read, "the racks of bookies")

    def rack_of(self, bookie_id: str) -> str:
        return self._racks.get(bookie_id, DEFAULT_RACK)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read them, and again whenever they change, until it is cancelled."""
        await self._following.run(task_status=task_status)

    async def _read(self) -> None:
        found = await self._store.get(PATH)
        try:
            self._racks = decode(found.value) if found is not None and found.value else {}
        except ValueError as error:
            log.warning("the racks of bookies at %s make no sense: %s", PATH, error)
