"""Configs as clients are shown them: a value, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from magnetar.wire.kafka import configs

FROM_TOPIC: Final = 1
FROM_SERVER: Final = 4
FROM_DEFAULT: Final = 5
FROM_GROUP: Final = 8
"""`ConfigEntry.ConfigSource` of Kafka, as numbers."""


class Shown(NamedTuple):
    """One config: its value, and where that comes from."""

    name: str
    value: str
    source: int


def of_new_topic(defaults: Mapping[str, str], requested: Mapping[str, str]) -> list[Shown]:
    """The configs of a topic that is created with those requested."""
    plain = {name: config.default for name, config in configs.TOPIC.items()}
    return shown_topic(defaults, requested, {**plain, **defaults, **requested})


def shown_topic(
    defaults: Mapping[str, str], own: Mapping[str, str], found: Mapping[str, str]
) -> list[Shown]:
    """The configs of a topic that has its own ones and, with the others, those found."""

    def source(name: str) -> int:
        if name in own:
            return FROM_TOPIC
        usual = configs.TOPIC[name].default
        return FROM_DEFAULT if defaults.get(name, usual) == usual else FROM_SERVER

    return [Shown(name, value, source(name)) for name, value in sorted(found.items())]
