"""Redirects of requests whose topic another broker owns: to the same path at the owner's address.

Pulsar's brokers do the same (`PulsarWebResource.validateBundleOwnership` of 4.2), and their clients
and tools follow: 307 keeps the method and the body (RFC 9110, 15.4.8).
"""

from __future__ import annotations

from starlette.requests import Request

from magnetar.core.kernel.errors import NotOwned


def location(error: NotOwned, request: Request) -> str | None:
    """The URL for `Location`; None if the owner has no listener of this scheme."""
    scheme = "https" if request.scope["scheme"] == "https" else "http"
    address = error.addresses.get(scheme)
    if not address:
        return None
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    query = request.scope["query_string"]
    target = path.partition(b"?")[0] + (b"?" + query if query else b"")
    return f"{scheme}://{address}{target.decode('ascii', 'replace')}"
