"""Quotas of client ids, for tests with clients that have no way to set them."""

import socket
from typing import Any

from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import Request, Response
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.messages.quotas import (
    AlterClientQuotasRequest,
    ChangeQuotas,
    QuotaChange,
    QuotaEntityPart,
)
from magnetar.wire.kafka.tests.frame import framed

SECONDS = 20


def asked(bootstrap_servers: str, request: Request) -> Any:
    """What a server answers to one request, in its newest version."""
    host, _, port = bootstrap_servers.rpartition(":")
    version = request.VERSIONS[1]
    with socket.create_connection((host, int(port)), SECONDS) as peer:
        peer.sendall(framed(request, version))
        frame = b""
        while len(frame) < 4 or len(frame) < 4 + int.from_bytes(frame[:4], "big"):
            frame += peer.recv(65536)
    response: type[Response] = APIS[request.KEY].response
    flexible = APIS[request.KEY].is_flexible(version)
    return decoder(response, version, flexible)(frame, 8 + flexible)[0]


def limit(
    bootstrap_servers: str, name: str, kind: str = "client-id", **limits: float | None
) -> None:
    """Set quotas of a client id, or of another kind, and remove those that are None."""
    change = ChangeQuotas(
        entity=[QuotaEntityPart(entity_type=kind, entity_name=name)],
        ops=[
            QuotaChange(key=key, value=value or 0.0, remove=value is None)
            for key, value in limits.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[change], validate_only=False)
    (result,) = asked(bootstrap_servers, request).entries
    assert result.error_code == 0, result.error_message
