"""Pytest fixtures for applications' tests: a real server, started on demand.

    def test_orders(magnetar):
        client = pulsar.Client(magnetar.pulsar_url)

`magnetar` lives for the whole run, `magnetar_module` for one file, `magnetar_function` for a test.
Settings for all of them come from the ini option `magnetar_settings`, lines of `section.key =
value` in TOML, and then from `--magnetar-setting section.key=value`. The report of a failed test
shows the end of its server's log.

Invariant: every run of pytest loads this module, so it imports only pytest; the first test that
uses a server imports the server's code.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from magnetar.child import Standalone

FIXTURES: Final = ("magnetar", "magnetar_module", "magnetar_function")
LOG_LINES_MAX: Final = 100
"""Lines of the server's log in the report of a failed test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "magnetar_settings",
        "Settings of the magnetar fixtures, lines of `section.key = value` as in TOML.",
        type="linelist",
    )
    parser.getgroup("magnetar").addoption(
        "--magnetar-setting",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="A setting of the magnetar fixtures, as in TOML; can be repeated.",
    )


@pytest.fixture(scope="session")
def magnetar(request: pytest.FixtureRequest) -> "Iterator[Standalone]":
    """A server for the whole run."""
    yield from _serve(request.config)


@pytest.fixture(scope="module")
def magnetar_module(request: pytest.FixtureRequest) -> "Iterator[Standalone]":
    """A server for the tests of one file."""
    yield from _serve(request.config)


@pytest.fixture
def magnetar_function(request: pytest.FixtureRequest) -> "Iterator[Standalone]":
    """A server for one test, which can kill and restart it."""
    yield from _serve(request.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the server's log with a test that failed."""
    report = yield
    if report.failed:
        given = getattr(item, "funcargs", {})
        for name in FIXTURES:
            if name in given:
                log = "\n".join(given[name].logs().splitlines()[-LOG_LINES_MAX:])
                report.sections.append((f"log of {name}", log))
    return report


def _serve(config: pytest.Config) -> "Iterator[Standalone]":
    from magnetar.child import standalone

    with standalone(**_settings(config)) as server:
        yield server


def _settings(config: pytest.Config) -> dict[str, Any]:
    import tomllib

    lines = [*config.getini("magnetar_settings"), *config.getoption("--magnetar-setting")]
    sections: dict[str, Any] = {}
    for line in lines:  # one by one, so that a later line may override an earlier one
        try:
            document = tomllib.loads(line)
        except tomllib.TOMLDecodeError as error:
            raise pytest.UsageError(f"magnetar setting {line!r}: {error}") from None
        for section, values in document.items():
            if not isinstance(values, dict):
                raise pytest.UsageError(f"magnetar setting {line!r}: write section.key = value")
            sections.setdefault(section, {}).update(values)
    return sections
