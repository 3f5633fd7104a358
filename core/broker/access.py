"""Who somebody is, and what he may do: the two doors at which security will stand. They are open.

Fronts ask before they act: `check` says nothing, or raises `Unauthorized`. Whoever proves who he is
does so by a mechanism, which is a conversation in bytes that fronts carry and do not understand; so
far there is none, and everybody is nobody in particular.

Invariant: a name comes from a mechanism that has ended well, or is `ANYBODY`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, Protocol

ANYBODY: Final = ""


class Action(enum.Enum):
    """What somebody wants to do to something."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"


class ResourceType(enum.Enum):
    """What that is."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTION = "transaction"
    CLUSTER = "cluster"


class Conversation(Protocol):
    """One proof, from its first words to its last."""

    @property
    def who(self) -> str:
        """The name that was proved; empty until the end."""
        ...

    def hear(self, said: bytes) -> bytes:
        """The answer to what a client said; raises `Unauthenticated`."""
        ...


class Access:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.mechanisms: dict[str, Callable[[], Conversation]] = {}
        """By the name that clients choose them by."""

    def check(self, who: str, action: Action, kind: ResourceType, name: str) -> None:
        """Whether somebody may; raises `Unauthorized`. Plain call: made for every request."""
