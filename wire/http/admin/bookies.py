"""`/admin/v2/bookies`: the bookies of a gateway's cluster, and the racks in which they stand.

Racks are kept as Pulsar's brokers keep them, so that these and Apache's AutoRecovery find them: at
`/bookies`, as JSON of groups of bookies (`BookiesRackConfiguration`, `BookiesBase.java` of Pulsar
4.2). A server with storage of its own has no bookies to place.

Invariant: a bookie is in one group at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, Corrupted
from magnetar.core.ports.bookie_administration import ClusterAdministration
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, not_here

PATH: Final = "/bookies"
TRIES: Final = 5
"""Of a change, while others change the racks as well."""
Racks = dict[str, dict[str, dict[str, Any]]]
"""What is said of each bookie, by group and bookie."""


class BookieRackInfo(msgspec.Struct):
    """What is said of one bookie: its rack, and a name for people (`BookieInfo` of Pulsar)."""

    rack: str = ""
    hostname: str = ""


def _cluster(request: AdminRequest) -> ClusterAdministration:
    found = request.options.bookies
    if found is None:
        raise not_here("storage is inside this server, not on bookies that could be placed")
    return found


async def all_bookies(request: AdminRequest) -> object:
    """All that have a cookie, whether they run or not, as Apache's."""
    if request.options.bookies is None:
        return {"bookies": []}
    known = await _cluster(request).known_bookies()
    return {"bookies": [{"bookieId": bookie} for bookie in known]}


async def racks_info(request: AdminRequest) -> object:
    racks, _ = await _read(request)
    return racks


async def rack_info(request: AdminRequest) -> object:
    racks, _ = await _read(request)
    bookie = request.part("bookie")
    for bookies in racks.values():
        if bookie in bookies:
            return bookies[bookie]
    raise HTTPException(404, f"Bookie rack placement configuration not found: {bookie}")


async def set_rack_info(request: AdminRequest) -> None:
    _cluster(request)
    bookie, group = request.part("bookie"), request.text("group")
    if not group:
        raise HTTPException(412, "Bookie 'group' parameters is missing")
    info = await request.json(BookieRackInfo)
    if not info.rack.strip("/ "):
        raise HTTPException(412, "rack name is invalid, it should not be null, empty or '/'")

    def put(racks: Racks) -> None:
        _remove(racks, bookie)
        racks.setdefault(group, {})[bookie] = msgspec.to_builtins(info)

    await _change(request, put)


async def delete_rack_info(request: AdminRequest) -> None:
    _cluster(request)
    bookie = request.part("bookie")

    def remove(racks: Racks) -> None:
        if not _remove(racks, bookie):
            raise HTTPException(404, f"Bookie address not found: {bookie}")

    await _change(request, remove)


def _remove(racks: Racks, bookie: str) -> bool:
    """Whether a bookie was there; groups without any go as well."""
    found = [group for group, bookies in racks.items() if bookies.pop(bookie, None) is not None]
    for group in found:
        if not racks[group]:
            del racks[group]
    return bool(found)


async def _read(request: AdminRequest) -> tuple[Racks, int]:
    stored = await request.broker.metadata.get(PATH)
    if stored is None:
        return {}, ABSENT
    if not stored.value:
        return {}, stored.version
    try:
        return msgspec.json.decode(stored.value, type=Racks), stored.version
    except msgspec.DecodeError as error:
        raise Corrupted(f"the racks of bookies at {PATH} make no sense: {error}") from error


async def _change(request: AdminRequest, change: Callable[[Racks], None]) -> None:
    for tries_left in reversed(range(TRIES)):
        racks, version = await _read(request)
        change(racks)
        try:
            await request.broker.metadata.put(PATH, msgspec.json.encode(racks), version)
        except (AlreadyExists, BadVersion):
            if not tries_left:
                raise
        else:
            return


TABLE: Final[Table] = (
    ("GET", "/all", all_bookies, Needs.SUPERUSER),
    ("GET", "/racks-info", racks_info, Needs.SUPERUSER),
    ("GET", "/racks-info/{bookie}", rack_info, Needs.SUPERUSER),
    ("POST", "/racks-info/{bookie}", set_rack_info, Needs.SUPERUSER),
    ("DELETE", "/racks-info/{bookie}", delete_rack_info, Needs.SUPERUSER),
)
