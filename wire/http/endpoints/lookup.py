"""HTTP lookup: the address of this broker if it serves a topic, else a redirect to the owner.

The C++ client requires `brokerUrlTls`, even if empty; Java takes the URL that fits its own scheme.
"""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.kernel.errors import NamespaceNotFound
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, plain_text

BUNDLE: Final = "0x00000000_0xffffffff"
"""Namespaces are not split: all topics of a namespace are in this bundle."""


async def lookup(request: AdminRequest) -> dict[str, str]:
    """The addresses to connect to for a topic, whether or not it exists yet."""
    await _check(request)
    listener = request.text("listenerName")
    if listener:
        raise HTTPException(404, f"the broker do not have {listener} listener")
    await request.broker.check_owned(request.topic)
    options = request.options
    return {
        "brokerUrl": options.broker_url,
        "brokerUrlTls": options.broker_url_tls,
        "httpUrl": options.http_url,
        "httpUrlTls": options.http_url_tls,
        "nativeUrl": options.broker_url,
    }


async def bundle(request: AdminRequest) -> Response:
    """The bundle of a topic: its range of the namespace's hash space."""
    await _check(request)
    return plain_text(BUNDLE)


def check_bundle(request: AdminRequest) -> None:
    """Raise 404 unless the request names the only bundle.

    Paths that end with a bundle have `0x{range}` there: any other word is another path.
    """
    whole = "bundle" in request.request.path_params
    bundle = request.part("bundle") if whole else f"0x{request.part('range')}"
    if bundle != BUNDLE:
        raise HTTPException(404, f"there is no bundle {bundle[:40]}, only {BUNDLE}")


async def _check(request: AdminRequest) -> None:
    if not await request.broker.catalog.has_namespace(request.topic.namespace):
        raise NamespaceNotFound(f"namespace {request.namespace} does not exist")


LOOKUPS: Final[Table] = (
    ("GET", "/{tenant}/{namespace}/{topic}", lookup, Needs.TOPIC),
    ("GET", "/{tenant}/{namespace}/{topic}/bundle", bundle, Needs.TOPIC),
)
TABLES: Final = {
    "/lookup/v2/topic/persistent": LOOKUPS,
    "/lookup/v2/topic/non-persistent": LOOKUPS,
}
