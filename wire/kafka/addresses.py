"""Addresses as Kafka's clients get them: a host and a port. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Endpoint(NamedTuple):
    """Where a client is to connect."""

    host: str
    port: int


def parsed(text: str) -> Endpoint:
    """`host:port`, with a host in brackets if it has colons."""
    host, _, port = text.rpartition(":")
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port))
