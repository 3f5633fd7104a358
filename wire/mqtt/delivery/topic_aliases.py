"""Topic aliases of the messages to one client (3.3.2.3.4). Pure.

The first topics that are sent get the numbers that the client accepts. From its second message on,
a topic is sent as its number, unless it is so large that the memory of many clients' aliases would
be, too. Mappings live as long as the connection [MQTT-3.3.2-7].

Invariant: the client knows each number that is sent without a topic.
"""

from __future__ import annotations

from typing import NamedTuple

from magnetar.wire.mqtt.topics import CACHED_BYTES_MAX


class Alias(NamedTuple):
    """How the topic of one message is sent."""

    number: int
    """0 for none."""
    is_known: bool
    """Whether the client has got the number with the topic."""


NO_ALIAS = Alias(0, is_known=False)


class TopicAliases:
    """See the module's docstring."""

    __slots__ = ("_maximum", "_numbers")

    def __init__(self, maximum: int) -> None:
        """`maximum` is the client's Topic Alias Maximum."""
        self._maximum = maximum
        self._numbers: dict[bytes, int] = {}

    def alias_of(self, topic: bytes) -> Alias:
        found = self._numbers.get(topic)
        if found is not None:
            return Alias(found, is_known=True)
        if len(self._numbers) < self._maximum and len(topic) <= CACHED_BYTES_MAX:
            return Alias(len(self._numbers) + 1, is_known=False)
        return NO_ALIAS

    def sent(self, topic: bytes, alias: Alias) -> None:
        """A message of that topic is sent so."""
        if alias.number:
            self._numbers[topic] = alias.number
