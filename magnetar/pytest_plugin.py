"""Fixtures for tests of applications: a real server, started on demand.

    def test_orders(magnetar):
        client = pulsar.Client(magnetar.pulsar_url)

`magnetar` lives for the whole run, `magnetar_module` for one file, `magnetar_function` for a test.
Settings for all of them: the ini option `magnetar_settings`, lines of `section.key = value` in
TOML's spelling, and after them `--magnetar-setting section.key=value`.

Invariant: this module is loaded in every run of pytest, so it imports nothing but pytest; the
server's code is imported by the first test that asks for a server.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from magnetar.child import Standalone


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
        help="A setting of the magnetar fixtures, as in TOML; may be given again.",
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
    """A server for one test, which may kill and restart it."""
    yield from _serve(request.config)


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
