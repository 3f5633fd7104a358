"""What a bookie publishes of itself while it runs: its endpoints (BP-38). Pure.

It is protobuf since BookKeeper 4.10. Bookies before it publish nothing; then the id is the address
(`BookieServiceInfoUtils.java` of 4.18). Clients connect to the endpoint of protocol `bookie-rpc`
(`DefaultBookieAddressResolver.java`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from magnetar.bookie.proto.registration_pb2 import BookieServiceInfo
from magnetar.core.kernel.errors import Corrupted, Invalid, NotFound

RPC: Final = "bookie-rpc"
HTTP: Final = "http"
READ_ONLY: Final = "readonly"
"""The node of read-only bookies stands among the bookies: no bookie may have its name."""
_ID: Final = re.compile(r"[a-zA-Z0-9:_.\-]+")


class BookieEndpoint(Struct, frozen=True):
    """One address of a bookie."""

    name: str
    host: str
    port: int
    protocol: str = RPC
    auth: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    """`tls` if connections may start TLS."""

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"


class ServiceInfo(Struct, frozen=True):
    """All that a bookie publishes."""

    endpoints: tuple[BookieEndpoint, ...] = ()
    properties: Mapping[str, str] = {}

    def encode(self) -> bytes:
        info = BookieServiceInfo(properties=self.properties)
        for endpoint in self.endpoints:
            info.endpoints.add(
                id=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                protocol=endpoint.protocol,
                auth=endpoint.auth,
                extensions=endpoint.extensions,
            )
        return info.SerializeToString(deterministic=True)

    def rpc(self) -> BookieEndpoint:
        """Where clients of the bookie connect."""
        for endpoint in self.endpoints:
            if endpoint.protocol == RPC:
                return endpoint
        raise NotFound(f"the bookie publishes no endpoint of protocol {RPC}")


def decode(bookie_id: str, data: bytes) -> ServiceInfo:
    """What is published by this bookie; without data, its id says it."""
    if not data:
        host, colon, port = bookie_id.rpartition(":")
        if not colon or not port.isdigit():
            raise Corrupted(f"bookie {bookie_id} publishes no endpoint, and its id is no HOST:PORT")
        return ServiceInfo((BookieEndpoint(bookie_id, host, int(port)),))
    try:
        info = BookieServiceInfo.FromString(data)
    except DecodeError as error:
        raise Corrupted(f"what bookie {bookie_id} publishes makes no sense") from error
    return ServiceInfo(
        tuple(
            BookieEndpoint(
                found.id,
                found.host,
                found.port,
                found.protocol,
                tuple(found.auth),
                tuple(found.extensions),
            )
            for found in info.endpoints
        ),
        dict(info.properties),
    )


def check_id(bookie_id: str) -> None:
    """Refuse an id that no bookie may have. `BookieId.java` of 4.18 admits some characters more."""
    if bookie_id == READ_ONLY or _ID.fullmatch(bookie_id) is None:
        raise Invalid(
            f"{bookie_id!r} cannot be the id of a bookie: letters, digits and : . _ - are allowed, "
            f"and {READ_ONLY!r} is not"
        )
