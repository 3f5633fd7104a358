"""The server of the matrix, where everybody has the rights that the model says."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from interop_tests.security.pulsar_people import Administrator, secured
from magnetar import Standalone

from .roles import proof, settle


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with secured(tmp_path_factory.mktemp("matrix")) as server:
        administrator = Administrator(server)
        root = AdminClient(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "x",
                "sasl.password": f"token:{proof('root')}",
                "log_level": 0,
            }
        )
        settle(administrator, root)
        administrator.http.close()
        yield server
