"""`/admin/v2/scram`: users of SCRAM, for `magnetar scram`; Kafka's tools have an API of their own.

The client makes the keys of a password, which this server never sees.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec import Struct
from starlette.exceptions import HTTPException

from magnetar.core.kernel.errors import Invalid
from magnetar.core.security.identity import is_name
from magnetar.core.security.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, Credential
from magnetar.core.security.scram_store import change_credentials, credentials_of, scram_users
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

SALT_BYTES: Final = (8, 256)
KEY_BYTES: Final = {"SCRAM-SHA-256": 32, "SCRAM-SHA-512": 64}


class ScramCredential(Struct, rename="camel"):
    """What is made of a password (`core/security/scram.py`), in base64."""

    salt: str = ""
    stored_key: str = ""
    server_key: str = ""
    iterations: int = 0


async def listed(request: AdminRequest) -> dict[str, list[str]]:
    """The users that have a credential, and for which mechanisms."""
    metadata = request.broker.metadata
    users = {name: await credentials_of(metadata, name) for name in await scram_users(metadata)}
    return {name: sorted(found) for name, found in users.items() if found}


async def put(request: AdminRequest) -> None:
    """Add a credential, or put it in the place of another one."""
    name, mechanism = _named(request)
    said = await request.json(ScramCredential)
    if not ITERATIONS_MIN <= said.iterations <= ITERATIONS_MAX:
        raise Invalid(f"iterations are from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    size = KEY_BYTES[mechanism]
    credential = Credential(
        _bytes("salt", said.salt, *SALT_BYTES),
        _bytes("storedKey", said.stored_key, size, size),
        _bytes("serverKey", said.server_key, size, size),
        said.iterations,
    )
    await change_credentials(request.broker.metadata, name, {mechanism: credential})


async def delete(request: AdminRequest) -> None:
    """Remove a credential; the sessions that it has proven end."""
    name, mechanism = _named(request)
    if not await change_credentials(request.broker.metadata, name, {mechanism: None}):
        raise HTTPException(404, f"{name} has no credential for {mechanism}")


def _named(request: AdminRequest) -> tuple[str, str]:
    name, mechanism = request.part("user"), request.part("mechanism")
    if not is_name(name):
        raise Invalid(f"{name!r} is no name of a user")
    if mechanism not in HASHES:
        raise Invalid(f"there is no mechanism {mechanism}: it is one of {', '.join(HASHES)}")
    return name, mechanism


def _bytes(field: str, text: str, least: int, most: int) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid(f"{field} is not base64") from None
    if not least <= len(found) <= most:
        raise Invalid(f"{field} has {len(found)} bytes, not {least} to {most}")
    return found


TABLES: Final[dict[str, Table]] = {
    "/admin/v2/scram": (
        ("GET", "", listed, Needs.SUPERUSER),
        ("PUT", "/{user}/{mechanism}", put, Needs.SUPERUSER),
        ("DELETE", "/{user}/{mechanism}", delete, Needs.SUPERUSER),
    )
}
