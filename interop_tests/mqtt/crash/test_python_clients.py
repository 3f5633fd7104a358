"""paho, gmqtt and amqtt's client, while the server is killed, and while it is stopped normally."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import magnetar

from .clients import KINDS, Came, Client, Will
from .device import crash

TURNS = 2
MESSAGES = 20


@pytest.fixture(scope="module")
def only_server() -> Iterator[Any]:
    with magnetar.standalone() as started:
        yield started


@pytest.fixture
def server(only_server) -> Any:
    """The same for all; a test before this one may have failed while it was down."""
    if not only_server.running:
        only_server.start()
    return only_server


@pytest.fixture(params=["killed", "stopped"])
def interrupt(request, server) -> Callable[[], None]:
    """The server ends, and starts again."""
    return lambda: crash(server) if request.param == "killed" else server.restart()


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def connect(server, kind, topic) -> Iterator[Callable[..., Client]]:
    """Makes clients, each with a session that lasts; all are closed afterwards."""
    made: list[Client] = []

    def make(name: str, will: Will | None = None, *, again: bool = True) -> Client:
        address = server.mqtt_url.removeprefix("mqtt://")
        made.append(kind.connect(address, f"{topic}-{name}", kind.version, will, again))
        return made[-1]

    yield make
    for client in made:
        client.close()


def publish(
    client: Client, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False
) -> None:
    client.post(topic, payload, qos, retain=retain)()


def take_until(client: Client, last: bytes) -> list[Came]:
    """What comes before that message."""
    found = [client.take()]
    while found[-1].payload != last:
        found.append(client.take())
    return found[:-1]


@pytest.mark.filterwarnings(  # amqtt leaves the writer of a lost connection to the collector
    "ignore:.*StreamWriter:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("qos", [1, 2])
def test_messages_in_flight(connect, interrupt, kind, topic, qos):
    """Reader and writer connect again by themselves; what was not acknowledged goes out again."""
    reader, writer = connect("reader"), connect("writer")
    reader.subscribe(topic, qos)
    expected = set()
    for turn in range(TURNS):
        payloads = [b"%d" % (turn * MESSAGES + number) for number in range(MESSAGES)]
        posted = [writer.post(topic, payload, qos) for payload in payloads]
        interrupt()
        for wait in posted:
            wait()
        expected.update(payloads)
    publish(writer, topic, b"last", qos)
    came = [one.payload for one in take_until(reader, b"last")]
    assert set(came) == expected, "nothing is lost"
    if qos == 2 and kind.discards_repeats:
        assert len(came) == len(expected), "nothing comes twice"


@pytest.mark.parametrize(("shared", "qos"), [("", 1), ("", 2), ("$share/group/", 1)])
def test_a_session_while_its_client_is_away(connect, interrupt, topic, qos, shared):
    first = connect("sleeper")
    first.subscribe(shared + topic, qos)
    first.close()
    writer = connect("writer")
    for number in range(MESSAGES):
        publish(writer, topic, b"%d" % number, qos)
    interrupt()
    publish(writer, topic, b"last", qos)
    came = take_until(connect("sleeper"), b"last")
    assert came == [Came(b"%d" % number, qos, False) for number in range(MESSAGES)]


def test_a_will(connect, interrupt, topic):
    """Of a client that is connected when the server ends, and does not come back [MQTT-3.1.2-8]."""
    reader = connect("reader")
    reader.subscribe(topic, 2)
    connect("device", Will(topic, b"gone", 1), again=False)
    interrupt()
    assert reader.take() == Came(b"gone", 1, False)


def test_retained_messages(connect, interrupt, topic):
    writer = connect("writer")
    for number in range(3):
        publish(writer, f"{topic}/{number}", b"%d" % number, retain=True)
    publish(writer, f"{topic}/1", b"", retain=True)
    interrupt()
    reader = connect("reader")
    reader.subscribe(f"{topic}/+", 1)
    publish(writer, f"{topic}/3", b"last")
    found = take_until(reader, b"last")
    assert sorted(found) == [Came(b"0", 1, True), Came(b"2", 1, True)]
