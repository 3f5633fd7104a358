"""Topics as programs read them: those that are stored."""

from __future__ import annotations

from magnetar.core.kernel.errors import Invalid
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic


def stored(topic: Topic) -> PersistentTopic:
    """The topic, if there are ledgers of it."""
    if (found := topic.stored) is None:
        raise Invalid(f"{topic.name} is not persistent: nothing of it is stored")
    return found
