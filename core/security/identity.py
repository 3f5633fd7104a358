"""Who a client is, once that is proven."""

from __future__ import annotations

from typing import Final


class Identity:
    """A principal with its roles.

    Pulsar calls the name a role, Kafka a user (`User:name`). Rights of any of the roles are its
    own: a token may name several. Connections may share one.
    """

    __slots__ = ("expires_at", "granted", "method", "name", "roles")

    def __init__(
        self,
        name: str,
        roles: tuple[str, ...] = (),
        method: str = "",
        expires_at: float | None = None,
    ) -> None:
        self.name: Final = name
        self.roles: Final = roles or (name,)
        self.method: Final = method
        """How it was proven: the name of the mechanism, empty for nobody."""
        self.expires_at: Final = expires_at
        """When the proof expires, in seconds of the wall clock; None for never."""
        self.granted: dict[tuple[int, int, str], int] = {}
        """Rights that the judge has found, with the generation of its rules (`judge.py`)."""

    def __repr__(self) -> str:
        return f"Identity({self.name!r}, {self.roles!r}, {self.method!r})"


ANYBODY: Final = Identity("")
"""A client of a server without authentication, or one that has not authenticated yet."""
