"""A server that has something to hide, and somebody at work on it."""

from collections.abc import Iterator

import pulsar
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from interop_tests.hostile.conftest import Bystander
from interop_tests.security.kafka_people import config
from interop_tests.security.pulsar_people import Administrator, secured
from interop_tests.security.rights.roles import TOPIC
from magnetar import Standalone

from .proofs import AUDIENCE, PUBLIC_KEY, SAMS_PASSWORD, signed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    folder = tmp_path_factory.mktemp("bad-input")
    (folder / "public.pem").write_bytes(PUBLIC_KEY)
    more = {"token_public_key": str(folder / "public.pem"), "token_audience": AUDIENCE}
    with secured(folder, scram=True, **more) as server:
        administrator = Administrator(server, signed("root").decode())
        http = administrator.http
        tenant = {"adminRoles": [], "allowedClusters": ["standalone"]}
        http.put("/admin/v2/tenants/secret", json=tenant).raise_for_status()
        http.put("/admin/v2/namespaces/secret/vault").raise_for_status()
        http.put("/admin/v2/persistent/secret/vault/t").raise_for_status()
        http.put(f"/admin/v2/persistent/public/default/{TOPIC}").raise_for_status()
        for role in ("writer", "bystander"):
            administrator.grant(role, "produce", *(["consume"] if role == "bystander" else []))
        http.close()
        root = AdminClient(config(server, ("x", f"token:{signed('root').decode()}"), "PLAIN"))
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        added = UserScramCredentialUpsertion("sam", credential, SAMS_PASSWORD)
        for done in root.alter_user_scram_credentials([added]).values():
            done.result(20)
        yield server


@pytest.fixture(scope="module")
def beside(server: Standalone) -> Iterator[Bystander]:
    """An ordinary client that must not be disturbed, on a server with nothing to be ashamed of."""
    proof = pulsar.AuthenticationToken(signed("bystander").decode())
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(server.pulsar_url, authentication=proof, logger=logger)
    found = Bystander(client, "beside")
    yield found
    found.works()
    client.close()
    said = server.logs()
    assert "Traceback" not in said, said
    assert "builder" not in said
    assert signed("root").decode() not in said
