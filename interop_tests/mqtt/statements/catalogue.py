"""The normative statements of MQTT 3.1.1 and 5.0, from `v3_1_1.toml` and `v5.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple


class Version(StrEnum):
    """A version of the specification."""

    V5 = "5.0"
    V3_1_1 = "3.1.1"


class Concern(StrEnum):
    """Who has to obey a statement, or to react when the other side breaks it."""

    SERVER = "server"
    CLIENT = "client"
    """A server does not notice a breach, or need not react to it."""
    BOTH = "both"
    NEITHER = "neither"
    """The statement is about something that this server does not do at all."""


class Statement(NamedTuple):
    number: str
    """What follows `MQTT-` in its name, such as 3.1.0-1."""
    version: Version
    concerns: Concern
    summary: str

    @property
    def needs_test(self) -> bool:
        return self.concerns in (Concern.SERVER, Concern.BOTH)


FILES: Final[Mapping[Version, str]] = {Version.V5: "v5.toml", Version.V3_1_1: "v3_1_1.toml"}


@cache
def statements(version: Version) -> Mapping[str, Statement]:
    """All statements of a version by number, in the order of the specification."""
    text = Path(__file__).with_name(FILES[version]).read_text(encoding="utf-8")
    return {
        number: Statement(number, version, Concern(row["concerns"]), row["summary"])
        for number, row in tomllib.loads(text).items()
    }
