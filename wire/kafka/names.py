"""Topics by the names that Kafka's clients use. Pure.

`t` is `persistent://public/default/t`, and `tenant/namespace/t` a topic of another namespace. The
name of a topic is the shortest one.

Invariant: `topic_of` is the inverse of `called`. It accepts longer spellings too, and each client
gets the one that it has used.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import TopicName

NAME_LETTERS_MAX: Final = 249
NAMES_CACHED_MAX: Final = 16_384
"""Names of resources in the cache."""
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


def topic_of(text: str) -> TopicName:
    """The topic with a client's name; raises `InvalidName`."""
    name = TopicName.parse(text)
    if not name.persistent:
        raise InvalidName(f"{text} keeps nothing, so there is nothing to read by offset")
    return name


@lru_cache(NAMES_CACHED_MAX)
def resource_of(text: str) -> str:
    """The name by which rights know a topic. One that is no name of a topic stays as it is: it is
    refused as such to whoever may use any topic.
    """
    try:
        return topic_of(text).base.full
    except InvalidName:
        return text


def new_topic_of(text: str) -> TopicName:
    """As `topic_of`, for a new topic, whose name all clients must accept."""
    name = topic_of(text)
    if not _LEGAL.fullmatch(name.local) or name.local in (".", ".."):
        raise InvalidName(f"a topic is called by letters, digits, '.', '_' and '-', not {text!r}")
    if len(name.local) > NAME_LETTERS_MAX:
        raise InvalidName(f"a topic's name has {NAME_LETTERS_MAX} letters at most")
    if name.partitioned:
        raise InvalidName(f"{text} would be a partition of {name.base.local}")
    return name


def called(name: TopicName) -> str:
    """The name of a topic for clients."""
    return name.shortest
