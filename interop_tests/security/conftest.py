"""A server that asks who one is, and a superuser of it."""

from collections.abc import Iterator

import pytest

from magnetar import Standalone

from .pulsar_people import Administrator, secured


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with secured(tmp_path_factory.mktemp("people")) as server:
        yield server


@pytest.fixture(scope="module")
def administrator(server: Standalone) -> Iterator[Administrator]:
    made = Administrator(server)
    yield made
    made.http.close()
