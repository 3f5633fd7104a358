"""A server that asks who one is, and a superuser of it."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from magnetar import Standalone

from .kafka_people import administrator_of, knowing
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


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with knowing(tmp_path_factory.mktemp("secure")) as server:
        yield server


@pytest.fixture(scope="module")
def root(secure: Standalone) -> AdminClient:
    return administrator_of(secure)
