"""The subscriptions of one session: by filter, what they grant, and what of them is stored.

The session's record has all of them. A large one is not stored for each change: the filters that
have changed since it was stored whole are noted here, and stored with the session's progress
(`clients/record.py`), until they have `CHANGED_BYTES_MAX`.

    changed is None   the record has to be stored whole: it never was, that failed, the changes are
                      many, or the record is small
    else              the record, with these filters' subscriptions or their absence, is complete

Invariant: `size` is that of all subscriptions in the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from magnetar.wire.mqtt.delivery.matcher import Grant, TopicSubscription, granted, stored_size
from magnetar.wire.mqtt.topics import CACHED_BYTES_MAX, matches

if TYPE_CHECKING:
    from collections.abc import Iterator

GRANTS_MAX: Final = 1024
"""Topics in the cache."""
CHANGED_BYTES_MAX: Final = 4096
"""Of changes that are stored with each progress, and of a record that is small. A client that
subscribes to filters of 40 bytes one by one has its record stored for every eightieth of them, and
2 KB on average for the others.
"""


class SessionSubscriptions:
    """See the module's docstring."""

    __slots__ = ("_changed_bytes", "_grants", "by_filter", "changed", "size")

    def __init__(self) -> None:
        self.by_filter: dict[str, TopicSubscription] = {}
        self.size = 0
        self.changed: dict[str, None] | None = None
        self._changed_bytes = 0
        self._grants: dict[bytes, tuple[Grant | None, Grant | None]] | None = None
        """Cached options by topic: for messages of others, and for its own. None for none."""

    def add(self, subscription: TopicSubscription) -> bool:
        """Add or replace a subscription; returns whether it is new."""
        filter = subscription.filter
        known = self.by_filter.get(filter)
        if known == subscription:
            return False
        self.by_filter[filter] = subscription
        if known is None:
            self.size += stored_size(filter)
        self._note(filter)
        return known is None

    def remove(self, filter: str) -> bool:
        """Remove a subscription; returns whether it existed."""
        if self.by_filter.pop(filter, None) is None:
            return False
        self.size -= stored_size(filter)
        self._note(filter)
        return True

    def _note(self, filter: str) -> None:
        self._grants = None
        if self.changed is None or filter in self.changed:
            return
        self.changed[filter] = None
        self._changed_bytes += stored_size(filter)
        if self.size <= CHANGED_BYTES_MAX or self._changed_bytes > CHANGED_BYTES_MAX:
            self.changed = None

    # -- the record ---------------------------------------------------------------------------

    def stored_whole(self) -> None:
        """All of them are in a record that is on its way to storage."""
        self.changed, self._changed_bytes = {}, 0

    def not_stored(self) -> None:
        """That record could not be stored."""
        self.changed = None

    def changes(self) -> Iterator[tuple[str, TopicSubscription | None]]:
        """The filters that have changed, with their subscriptions; None for ended ones."""
        for filter in self.changed or ():
            yield filter, self.by_filter.get(filter)

    # -- what they grant ----------------------------------------------------------------------

    def grant_of(self, topic: bytes, *, own: bool) -> Grant | None:
        """The options with which the session gets the messages of a topic, of its own client or of
        others; None if it does not.
        """
        if self._grants is None:
            self._grants = {}
        found = self._grants.get(topic)
        if found is None:
            found = self._found_grants(topic.decode())
            if len(topic) <= CACHED_BYTES_MAX:
                if len(self._grants) >= GRANTS_MAX:
                    self._grants.clear()
                self._grants[topic] = found
        return found[own]

    def _found_grants(self, topic: str) -> tuple[Grant | None, Grant | None]:
        matching = [one for one in self.by_filter.values() if matches(one.filter, topic)]
        return granted(matching) if matching else (None, None)
