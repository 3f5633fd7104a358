"""Who a client is, once that is proven."""

from __future__ import annotations

from typing import Final


class Identity:
    """A principal with its roles.

    Pulsar calls the name a role, Kafka a user (`User:name`). Rights of any of the roles are its
    own: a token may name several. Connections may share one.
    """

    __slots__ = ("__weakref__", "authorities", "expires_at", "granted", "method", "name", "roles")

    def __init__(
        self,
        name: str,
        roles: tuple[str, ...] = (),
        method: str = "",
        expires_at: float | None = None,
        authorities: frozenset[bytes] = frozenset(),
    ) -> None:
        self.name: Final = name
        self.roles: Final = roles or (name,)
        self.method: Final = method
        """How it was proven: the name of the mechanism, empty for nobody."""
        self.expires_at: Final = expires_at
        """When the proof expires, in seconds of the wall clock; None for never."""
        self.authorities: Final = authorities
        """Whom the proof stands on besides: digests of certificates, all of which we must trust."""
        self.granted: dict[tuple[int, int, str], int] = {}
        """Rights that the judge has found, with the generation of its rules (`judge.py`)."""

    def __repr__(self) -> str:
        return f"Identity({self.name!r}, {self.roles!r}, {self.method!r})"


NAME_LETTERS_MAX: Final = 1024


def is_name(text: str) -> bool:
    """Whether a text can be somebody's name: printable, and not padded, so that no two names look
    the same in a log or a list.
    """
    return 0 < len(text) <= NAME_LETTERS_MAX and text.isprintable() and text == text.strip()


ANYBODY: Final = Identity("")
"""A client of a server without authentication, or one that has not authenticated yet."""
