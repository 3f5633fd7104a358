"""The way of a message that `docs/architecture.md` lists is the one that it takes."""

from __future__ import annotations

import re
from pathlib import Path

from bench.walk import walked

ARCHITECTURE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
HEADING = "## One message from Kafka to Pulsar"
FILES_MAX = 60
"""As many as before protocols had forms of their own: the way may only become shorter."""


def listed() -> set[str]:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    return {name for name in re.findall(r"`([\w/]+\.py)`", section) if name != "bench/walk.py"}


def test_the_documented_way_of_a_message() -> None:
    passed = set(walked(idle_seconds=0))
    documented = listed()
    assert len(documented) > 40
    missed = documented - passed
    assert not missed, "the message does not come by here"
    assert len(documented) < FILES_MAX
