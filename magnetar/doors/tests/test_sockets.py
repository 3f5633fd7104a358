"""Listening sockets: which there are, and what is said when one cannot be had."""

import errno
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from magnetar.doors.sockets import _sentence, address, host_names, open_doors
from magnetar.fronts import door_plans
from magnetar.operator_error import OperatorError
from magnetar.settings import Settings, load
from magnetar.settings.server import Listen

NO_TLS: Mapping[str, ssl.SSLContext] = {}


def _settings(extra: str = "", host: str = "127.0.0.1") -> Settings:
    ports = "pulsar_port = 0\nkafka_port = 0\nmqtt_port = 0\nhttp_port = 0\n"
    return load(f"[listen]\nhost = '{host}'\n{ports}{extra}").settings


@pytest.fixture
def busy() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def _names(settings: Settings, contexts: Mapping[str, ssl.SSLContext] = NO_TLS) -> list[str]:
    with ExitStack() as stack:
        doors = open_doors(door_plans(settings), settings, contexts)
        for name, door in doors.items():
            stack.enter_context(door.socket)
            assert (door.name, door.tls) == (name, contexts.get(name))
            assert door.socket.getsockname()[1] > 0
            assert not door.socket.getblocking()
            with socket.create_connection(door.socket.getsockname()[:2]):
                pass
        return list(doors)


def test_without_a_certificate_there_is_one_for_each_protocol() -> None:
    assert _names(_settings()) == ["pulsar", "kafka", "mqtt", "mqtt_ws", "http"]


def test_with_a_certificate_each_has_a_second() -> None:
    names = ["pulsar_tls", "kafka_tls", "mqtt_tls", "mqtt_wss", "https"]
    tls = "".join(f"{name}_port = 0\n" for name in names) + "[tls]\ncertificate = 'c.pem'"
    contexts = {name: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for name in names}
    assert _names(_settings(tls), contexts)[5:] == names


def test_localhost_means_the_old_protocol_too() -> None:
    assert _names(_settings(host="localhost")) == ["pulsar", "kafka", "mqtt", "mqtt_ws", "http"]


def test_addresses_of_both_families() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        assert address(door) == f"127.0.0.1:{door.getsockname()[1]}"
    if socket.has_dualstack_ipv6():
        with socket.create_server(("::1", 0), family=socket.AF_INET6) as door:
            assert address(door) == f"[::1]:{door.getsockname()[1]}"


def test_a_busy_port_closes_the_other_doors(busy: int) -> None:
    others = "".join(f"{name}_port = 0\n" for name in ("pulsar", "kafka", "mqtt"))
    settings = load(f"[listen]\n{others}http_port = {busy}").settings
    with pytest.raises(OperatorError) as caught:
        # a door left open would be a ResourceWarning, which is an error here
        open_doors(door_plans(settings), settings, NO_TLS)
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1 port {busy} for http: the port is in use by another program; "
        "choose another with --http-port"
    )


def test_somebody_elses_address() -> None:
    settings = _settings(host="192.0.2.1")
    with pytest.raises(OperatorError, match="this machine does not have that address"):
        open_doors(door_plans(settings), settings, NO_TLS)


@pytest.mark.parametrize(
    ("number", "name", "sentence"),
    [
        (
            errno.EACCES,
            "http",
            "not permitted; ports below 1024 need a privilege, choose one with --http-port",
        ),
        (
            errno.EPERM,
            "pulsar_tls",
            "not permitted; ports below 1024 need a privilege, choose one with --pulsar-tls-port",
        ),
        (errno.ENOBUFS, "https", os.strerror(errno.ENOBUFS)),
    ],
)
def test_what_this_machine_may_refuse(number: int, name: str, sentence: str) -> None:
    results = _sentence(name, "127.0.0.1", 443, OSError(number, os.strerror(number)))
    assert results == f"cannot listen on 127.0.0.1 port 443 for {name}: {sentence}"


@pytest.mark.parametrize("host", ["no such host", "x" * 300])
def test_no_address_at_all(host: str) -> None:
    settings = _settings(host=host)
    with pytest.raises(OperatorError, match="is not an address of this machine"):
        open_doors(door_plans(settings), settings, NO_TLS)


def test_a_server_on_loopback_answers_to_no_name_of_a_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        names = host_names(Listen(http_allowed_hosts=("mq.example.org",)), door)
    assert names.include("localhost:8080")
    assert names.include("mq.example.org")
    assert names.include(socket.gethostname())
    assert not names.include("surely-nobody")


def test_a_server_of_a_network_answers_to_its_names_without_dots() -> None:
    with socket.create_server(("0.0.0.0", 0)) as door:
        names = host_names(Listen(host="0.0.0.0", advertised_host="mq.example.org"), door)
    assert names.include("magnetar:8080")
    assert names.include("mq.example.org:8080")
    assert not names.include("evil.example")
