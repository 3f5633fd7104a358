import pytest

from bench.drive.cases import CASES
from bench.drive.command import chosen, parser
from bench.drive.generator import GeneratorError, parse_line


def test_loads_come_before_the_cases_that_restart_servers() -> None:
    assert [case.name for case in chosen(["cold", "publish"])] == ["publish", "cold"]
    assert len(chosen(["all"])) == len(CASES)
    assert all(case.goal for case in chosen(["goals"]))


def test_an_unknown_case_is_named_with_those_there_are() -> None:
    with pytest.raises(SystemExit, match="no such case: nope; there are: publish"):
        chosen(["nope"])


def test_without_options_our_server_is_measured_synced() -> None:
    options = parser().parse_args([])
    assert (options.server, options.no_sync, options.rounds) == ("magnetar", False, 3)


def test_the_generator_that_prints_nothing_has_failed() -> None:
    with pytest.raises(GeneratorError):
        parse_line("")
