import pytest

from bench.drive.catalogue import CASES
from bench.drive.command import needed, parser
from bench.drive.generator import KAFKALOAD, KAFKARAW, PULSARLOAD, GeneratorError, parse_line


def test_without_options_our_server_is_measured_synced() -> None:
    options = parser().parse_args([])
    assert (options.server, options.no_sync, options.rounds) == ("magnetar", False, 3)


def test_the_generator_that_prints_nothing_has_failed() -> None:
    with pytest.raises(GeneratorError):
        parse_line("")


def test_librdkafka_is_needed_only_for_kafka() -> None:
    assert set(needed(CASES["publish"])) == {PULSARLOAD}
    assert set(needed(CASES["kafka-produce-1k"])) == {KAFKALOAD, KAFKARAW}
