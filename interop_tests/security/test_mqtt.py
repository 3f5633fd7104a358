"""MQTT's clients: paho, and Mosquitto's tools. Names and passwords, tokens, rights that go."""

import queue
import shutil
import subprocess

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from .pulsar_people import Administrator, secured, token

WAIT_SECONDS = 15


def at(server, listener="mqtt"):
    """Host and port of one of MQTT's doors."""
    host, port = server.listeners[listener].split(":")
    return host, int(port)


class Device:
    """A client of paho's, and what it hears."""

    def __init__(
        self,
        server,
        name=None,
        password=None,
        version=mqtt.MQTTv5,
        client_id="",
        will=None,
        listener="mqtt",
    ):
        self.heard = queue.Queue()
        self.client = client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=version, reconnect_on_failure=False
        )
        if name is not None:
            client.username_pw_set(name, password)
        if will is not None:
            client.will_set(*will)
        client.on_connect = lambda _c, _u, _f, reason, _p: self.heard.put(("connect", str(reason)))
        client.on_disconnect = lambda *a: self.heard.put(("disconnect", str(a[3])))
        client.on_message = lambda _c, _u, message: self.heard.put(("message", message.payload))
        client.on_publish = lambda *a: self.heard.put(("published", str(a[3])))
        client.on_subscribe = lambda *a: self.heard.put(("subscribed", str(a[3][0])))
        client.connect(*at(server, listener))
        client.loop_start()

    def hears(self, kind):
        found, what = self.heard.get(timeout=WAIT_SECONDS)
        assert found == kind, (found, what)
        return what

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.disconnect()
        self.client.loop_stop()
        self.client._reset_sockets()


@pytest.mark.parametrize("version", [mqtt.MQTTv311, mqtt.MQTTv5])
def test_who_may_connect(server, version):
    for name, password in (("bob", "builder"), ("x", token("alice")), ("x", "token:" + token("a"))):
        with Device(server, name, password, version) as device:
            assert device.hears("connect") == "Success"
    wrong = {"Bad user name or password", "Not authorized"}
    for name, password in (
        ("bob", "wrong"),
        ("eve", "builder"),
        ("x", token("alice", seconds=-60)),
        ("x", token("root", secret=b"x" * 32)),
        (None, None),
    ):
        with Device(server, name, password, version) as device:
            assert device.hears("connect") in wrong


def test_rights_come_and_go(server, administrator):
    """A publish that is denied leaves the connection; a reader that lost its right is told so."""
    with Device(server, "x", token("ann")) as device:
        assert device.hears("connect") == "Success"
        device.client.publish("t", b"0", qos=1)
        assert device.hears("published") == "Not authorized"
        device.client.subscribe("t", 1)
        assert device.hears("subscribed") == "Not authorized"
        administrator.grant("ann", "produce", "consume")
        device.client.subscribe("t", 1)
        assert device.hears("subscribed") == "Granted QoS 1"
        device.client.publish("t", b"1", qos=1)
        assert {device.heard.get(timeout=WAIT_SECONDS) for _ in range(2)} == {
            ("published", "Success"),
            ("message", b"1"),
        }
        administrator.revoke("ann")
        assert device.hears("disconnect") == "Not authorized"


def test_a_session_is_for_who_began_it(server, administrator):
    """Another may neither resume nor end it, whatever rights he has; a superuser may."""
    administrator.grant("ann", "produce", "consume")
    administrator.grant("dave", "produce", "consume")
    with Device(server, "x", token("ann"), client_id="dev-1") as ann:
        assert ann.hears("connect") == "Success"
        with Device(server, "x", token("dave"), client_id="dev-1") as dave:
            assert dave.hears("connect") == "Not authorized"
        ann.client.subscribe("t", 1)
        assert ann.hears("subscribed") == "Granted QoS 1"
        with Device(server, "x", token("root"), client_id="dev-1") as root:
            assert root.hears("connect") == "Success"
        assert ann.hears("disconnect") == "Session taken over"


def test_a_session_ends_with_its_token(server, administrator):
    administrator.grant("tim", "produce")
    with Device(server, "x", token("tim", seconds=2)) as device:
        assert device.hears("connect") == "Success"
        assert device.hears("disconnect") == "Not authorized"


def test_an_unknown_method(server):
    properties = Properties(PacketTypes.CONNECT)
    properties.AuthenticationMethod = "GSSAPI"
    heard = queue.Queue()
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5, reconnect_on_failure=False
    )
    client.on_connect = lambda _c, _u, _f, reason, _p: heard.put(str(reason))
    client.connect(*at(server), properties=properties)
    client.loop_start()
    try:
        assert heard.get(timeout=WAIT_SECONDS) == "Bad authentication method"
    finally:
        client.disconnect()
        client.loop_stop()
        client._reset_sockets()


def test_mosquittos_tools(server, administrator):
    administrator.grant("bob", "produce")
    tool = shutil.which("mosquitto_pub")
    assert tool is not None, "these tests need mosquitto-clients, a package of Debian"
    host, port = at(server)
    words = f"{tool} -h {host} -p {port} -t t -m hello -q 1 -u bob -P"
    command = words.split()
    done, refused = [
        subprocess.run([*command, word], check=False, timeout=60, capture_output=True, text=True)
        for word in ("builder", "wrong")
    ]
    assert (done.returncode, refused.returncode != 0) == (0, True)
    assert "bad user name or password" in refused.stderr


def test_clients_that_do_not_authenticate_are_told_of_changes(tmp_path):
    with secured(tmp_path, anonymous_role="guest") as server:
        administrator = Administrator(server)
        administrator.grant("guest", "consume")
        with Device(server) as device:
            assert device.hears("connect") == "Success"
            device.client.subscribe("t", 1)
            assert device.hears("subscribed") == "Granted QoS 1"
            administrator.revoke("guest")
            assert device.hears("disconnect") == "Not authorized"
        administrator.http.close()
