"""Subscriptions that a front holds for clients of its own, which are no consumers.

A protocol with sessions keeps the place of each session itself. One subscription of each topic
stands for all of them: its cursor is behind the lowest place, and keeps what a session needs. If
anything else moved or deleted it, sessions would lose messages and not hear of it. So nobody but
its holder may, and no consumer may attach; policies apply to it as to all subscriptions.

A shared subscription of that protocol has a place and no cursor; the holder describes it for
statistics.

Invariant: a held name is refused on every topic, whether it has that subscription or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from magnetar.core.kernel.errors import NotAllowed


class HeldClient(Struct, frozen=True):
    """A connected client for which a subscription is held."""

    name: str
    address: str
    version: str
    connected_ms: int
    messages_out: int
    unacked: int


class HeldGroup(Struct, frozen=True):
    """A shared subscription in one topic."""

    name: str
    backlog: int
    """Entries from its place on, and those with messages that are not acknowledged."""
    unacked: int
    sessions: int
    clients: Sequence[HeldClient]


class SubscriptionHolder(Protocol):
    """A front that holds subscriptions. Topics are given by their full names."""

    def refusal(self, name: str) -> str | None:
        """Why nobody else may use that subscription, in a sentence; None if it is not held."""
        ...

    def sessions(self, topic: str) -> int | None:
        """How many sessions need the topic; None if that is not known yet."""
        ...

    def clients(self, topic: str, most: int) -> Sequence[HeldClient]:
        """Some of the connected clients that read the topic."""
        ...

    def groups(self, topic: str, most: int) -> Sequence[HeldGroup]:
        """Some of the shared subscriptions that read the topic, and last."""
        ...

    async def advance(self) -> None:
        """Move the cursors as far as sessions permit now."""
        ...


class HeldSubscriptions:
    """All held subscriptions of a broker. See the module's docstring."""

    def __init__(self) -> None:
        self._holders: list[SubscriptionHolder] = []

    def add(self, holder: SubscriptionHolder) -> None:
        self._holders.append(holder)

    def refusal(self, name: str) -> str | None:
        """Why only its holder may use that subscription; None if it is not held."""
        for holder in self._holders:
            reason = holder.refusal(name)
            if reason is not None:
                return reason
        return None

    def check(self, name: str) -> None:
        """Raise `NotAllowed` if the subscription is held."""
        reason = self.refusal(name)
        if reason is not None:
            raise NotAllowed(reason)

    def sessions(self, topic: str) -> int | None:
        found = [each for holder in self._holders if (each := holder.sessions(topic)) is not None]
        return sum(found) if found else None

    def clients(self, topic: str, most: int) -> Sequence[HeldClient]:
        found = [one for holder in self._holders for one in holder.clients(topic, most)]
        return found[:most]

    def groups(self, topic: str, most: int) -> Sequence[HeldGroup]:
        found = [one for holder in self._holders for one in holder.groups(topic, most)]
        return found[:most]

    async def advance(self) -> None:
        for holder in self._holders:
            await holder.advance()
