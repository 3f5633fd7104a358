"""Authentication and authorization, as fronts use them. Neither restricts anything yet.

Fronts call `check` before they act; it returns, or raises `Unauthorized`. A client authenticates by
a mechanism: an exchange of bytes that fronts pass on without interpreting it (SASL, and Pulsar's
AUTH_CHALLENGE of PIP-30). There is no mechanism yet, so every client is `ANYBODY`.

Invariant: a name comes from a mechanism that succeeded, or is `ANYBODY`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, Protocol

ANYBODY: Final = ""


class Action(enum.Enum):
    """An operation on a resource, to which a client needs the right."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"


class ResourceType(enum.Enum):
    """The kind of resource."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTION = "transaction"
    CLUSTER = "cluster"


class Conversation(Protocol):
    """The exchange of one authentication."""

    @property
    def who(self) -> str:
        """The authenticated name; empty until the exchange succeeds."""
        ...

    def respond(self, said: bytes) -> bytes:
        """Process bytes of the client and return the answer; raises `Unauthenticated`."""
        ...


class Access:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.mechanisms: dict[str, Callable[[], Conversation]] = {}
        """By the names that clients use."""

    def check(self, who: str, action: Action, kind: ResourceType, name: str) -> None:
        """Raise `Unauthorized` unless the action is allowed. Plain call, for every request."""
