"""Access: authentication and authorization, as fronts ask for them. Neither restricts anything yet.

Fronts call `check` before they act; it returns, or raises `Unauthorized`. A client authenticates by
a mechanism, a conversation in bytes that fronts carry without understanding it. There is no
mechanism yet, so every client is `ANYBODY`.

Invariant: a name comes from a mechanism that succeeded, or is `ANYBODY`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, Protocol

ANYBODY: Final = ""


class Action(enum.Enum):
    """What a client does to a resource."""

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
    """One authentication, from its first bytes to its last."""

    @property
    def who(self) -> str:
        """The authenticated name; empty until the end."""
        ...

    def hear(self, said: bytes) -> bytes:
        """The answer to what a client said; raises `Unauthenticated`."""
        ...


class Access:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.mechanisms: dict[str, Callable[[], Conversation]] = {}
        """By the names by which clients choose them."""

    def check(self, who: str, action: Action, kind: ResourceType, name: str) -> None:
        """Return if that is allowed, else raise `Unauthorized`. Plain call, for every request."""
