"""Proxies of Pulsar whose clients prove themselves to the server, on bare sockets.

It is said as Apache's proxy says it with `forwardAuthorizationCredentials=true`.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop_tests.raw import Raw
from interop_tests.security.bad_input.test_pulsar_auth import REFRESH, answer
from interop_tests.security.pulsar_people import Administrator, secured, token
from magnetar import Standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    folder = Path(tmp_path_factory.mktemp("proxies"))
    with secured(folder, proxy_roles=["proxy"], authenticate_original_auth_data=True) as server:
        administrator = Administrator(server)
        administrator.grant("proxy", "produce")
        administrator.grant("alice", "produce")
        administrator.http.close()
        yield server


def through_proxy(client: Raw, proof: str, method: str = "token", proxy: str = "") -> None:
    """CONNECT of a proxy for a client that calls itself bob, whatever it proves."""
    client.say(
        peer.connect(
            auth_method_name="token",
            auth_data=(proxy or token("proxy")).encode(),
            proxy_version="4.2.4",
            original_principal="bob",
            original_auth_data=proof,
            original_auth_method=method,
        )
    )


def test_who_the_client_proves_to_be_may_do_what_it_may(server) -> None:
    for proof, method, may in (
        (token("alice"), "token", True),
        (token("eve"), "token", False),
        ("bob:builder", "basic", False),
    ):
        with Raw(server) as client:
            through_proxy(client, proof, method)
            assert client.receive().kind == "CONNECTED"
            answered = client.ask(peer.producer(1, 1, "t"))
            assert (answered.kind == "PRODUCER_SUCCESS") is may, proof


def test_who_is_refused(server) -> None:
    for proof, method, proxy, code in (
        (token("alice", secret=b"x" * 32), "token", "", pb.AuthenticationError),
        ("bob:guess", "basic", "", pb.AuthenticationError),
        ("", "none", "", pb.AuthenticationError),
        (token("alice"), "token", token("proxy", seconds=-60), pb.AuthenticationError),
        (token("proxy"), "token", "", pb.AuthorizationError),
        (token("alice"), "token", token("alice"), pb.AuthorizationError),
    ):
        with Raw(server) as client:
            through_proxy(client, proof, method, proxy)
            said = client.receive()
            assert (said.kind, said.body.error) == ("ERROR", code), (proof, method, proxy)
            assert client.until_closed() == []


def test_the_clients_proof_is_refreshed_and_not_the_proxys(server) -> None:
    with Raw(server) as first, Raw(server) as second:
        begun = time.time()
        for client in (first, second):
            through_proxy(client, token("alice", seconds=1), proxy=token("proxy", seconds=2))
            assert client.receive().kind == "CONNECTED"
        for client in (first, second):
            asked = client.receive()
            assert asked.kind == "AUTH_CHALLENGE"
            assert asked.body.challenge.auth_data == REFRESH
        assert time.time() > begun + 2, "the proxy's own has expired by now"
        first.say(answer("token", token("alice").encode()))
        assert first.ask(peer.producer(1, 1, "t")).kind == "PRODUCER_SUCCESS"
        second.say(answer("token", token("root").encode()))
        said = second.receive()
        assert (said.kind, said.body.error) == ("ERROR", pb.AuthenticationError)
