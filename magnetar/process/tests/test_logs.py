"""Log lines in both forms, and levels for parts."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from magnetar.process.logs import configure
from magnetar.settings.server import Log


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Where the lines go; the root logger is put back afterwards."""
    written = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    for part in ("wire.pulsar", "core"):
        logging.getLogger(f"magnetar.{part}").setLevel(logging.NOTSET)


def test_text(written: io.StringIO) -> None:
    configure(Log(), written)
    logging.getLogger("magnetar.core.topic").info("made", extra={"topic": "t", "partitions": 3})
    line = (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info    core.topic: made  topic=t  partitions=3\n"
    )
    assert re.fullmatch(line, written.getvalue())


def test_json(written: io.StringIO) -> None:
    configure(Log(format="json"), written)
    logging.getLogger("magnetar.core.topic").warning("gone %d", 1, extra={"topic": "ü"})
    line = json.loads(written.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "part": "core.topic", "message": "gone 1", "topic": "ü"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_tracebacks_are_kept(written: io.StringIO, form: str) -> None:
    configure(Log(format=form), written)  # type: ignore[arg-type]  # one of the two
    try:
        raise ValueError("deep")
    except ValueError:
        logging.getLogger("magnetar.core").exception("it failed")
    assert "ValueError: deep" in written.getvalue()
    assert written.getvalue().endswith("\n")


def test_parts_have_levels_of_their_own(written: io.StringIO) -> None:
    configure(Log(level="warning", levels={"wire.pulsar": "debug", "core": "error"}), written)
    logging.getLogger("magnetar.wire.pulsar.session").debug("one")
    logging.getLogger("magnetar.wire.http").info("not this")
    logging.getLogger("magnetar.core.topic").warning("nor this")
    logging.getLogger("magnetar.bookie").warning("two")
    assert [line.rpartition(" ")[2] for line in written.getvalue().splitlines()] == ["one", "two"]
