"""The cases: loads, their options, and the project's goal for each.

Pure; the tables are in `drive/*_cases.py`, and `drive/measure.py`
carries them out. Invariant: a case names only options that its generator has, so that each figure
can be measured again by hand.
"""

import enum
from collections.abc import Mapping

import msgspec

from bench.drive.generator import KAFKALOAD, KAFKARAW, MQTTLOAD, PULSARLOAD

Options = dict[str, str | int]


class Kind(enum.Enum):
    """How a case is measured."""

    LOAD = "load"
    BACKLOG = "backlog"
    STARTUP = "startup"
    IDLE = "idle"
    MEMORY = "memory"


class Protocol(enum.Enum):
    """The protocol, which determines the peer."""

    PULSAR = "pulsar"
    KAFKA = "kafka"
    MQTT = "mqtt"


SPEAKS = {
    PULSARLOAD: Protocol.PULSAR,
    KAFKALOAD: Protocol.KAFKA,
    KAFKARAW: Protocol.KAFKA,
    MQTTLOAD: Protocol.MQTT,
}


class Backlog(msgspec.Struct, frozen=True):
    """A load that is written first and then read, and the step in between."""

    messages: int
    messages_full: int
    reader: str
    """The generator that reads it, for any protocol."""
    reading: Options = {}
    restart: bool = True
    """Read by a new process, which has nothing of it in its memory,"""
    forget: bool = True
    """and when the page cache has nothing of it either; else it has all of it."""


class Memory(msgspec.Struct, frozen=True):
    """What a load leaves in memory."""

    before: Options | None = None
    """A load that comes first, so that what it leaves does not count."""
    reading: Options | None = None
    """A load that finds after the restart what was kept, or fails."""
    topic: str = "kept"
    stays: bool = False
    """Whether the clients have to stay for it; then nothing is left after a restart."""


class Case(msgspec.Struct, frozen=True):
    """One row of the table: a load and its goal."""

    name: str
    title: str
    generator: str
    options: Options = {}
    kind: Kind = Kind.LOAD
    goal: str = ""
    topics: int = 1
    backlog: Backlog | None = None
    memory: Memory | None = None
    beside: Options | None = None
    """Idle clients of the same generator, which are there during the load."""

    @property
    def protocol(self) -> Protocol:
        """Cases that are measured beside the peer."""
        return SPEAKS[self.generator]

    @property
    def generators(self) -> list[str]:
        return [self.generator, *([self.backlog.reader] if self.backlog else [])]

    @property
    def protocols(self) -> set[Protocol]:
        """The protocols that a server must speak: messages may be read in another one."""
        return {SPEAKS[name] for name in self.generators}


def spelled(options: Mapping[str, str | int | float]) -> list[str]:
    """Options as a generator takes them; one without a value is a flag."""
    return [
        part
        for option, value in options.items()
        for part in ((f"--{option}", str(value)) if value != "" else (f"--{option}",))
    ]


def arguments(case: Case, topic: str, seconds: float, warmup: float) -> list[str]:
    """Turn a load case into options of its generator; a case of many topics numbers them."""
    name = f"{topic}-%d" if case.topics > 1 else topic
    return spelled({"topic": name, "seconds": seconds, "warmup": warmup, **case.options})
