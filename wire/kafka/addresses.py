"""Addresses for Kafka's clients: host and port. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Endpoint(NamedTuple):
    """An address to connect to."""

    host: str
    port: int


def parsed(text: str) -> Endpoint:
    """Parse `host:port`; a host with colons has brackets."""
    host, _, port = text.rpartition(":")
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port))
