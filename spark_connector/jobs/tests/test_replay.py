"""What the command line says of a copy."""

import argparse

import pytest

from magnetar.spark_connector.jobs import command, replay


def parsed(*given: str) -> replay.ReplayOptions:
    parser = command.parser_of(replay.COMMAND)
    return replay._options(parser.parse_args(["--topic", "t", "--to", "u", *given]))


def test_range_and_sink() -> None:
    options = parsed(
        "--from", "2026-01-02T03:04", "--until", "1767323045000", "--name", "n",
        "--sink-option", "compression=lz4", "--option", "isolationLevel=read_uncommitted",
    )  # fmt: skip
    assert options.topics.options == {
        "startingTimestamp": "1767323040000",
        "endingTimestamp": "1767323045000",
        "isolationLevel": "read_uncommitted",
    }
    assert replay._sink(options) == {
        "service.url": "http://127.0.0.1:8080", "topic": "u", "delivery": "exactly_once",
        "sinkId": "n", "batchId": "0", "compression": "lz4",
    }  # fmt: skip
    assert options.select == replay.COPIED
    assert options.ordered


@pytest.mark.parametrize("text", ["2026-01-02T03:04+01:00", "2026-01-02 02:04"])
def test_times(text: str) -> None:
    assert replay.milliseconds(text) == "1767319440000"


def test_no_time() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no time"):
        replay.milliseconds("noon")
