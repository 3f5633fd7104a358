"""Authentication: exchanges by AUTH, passwords, and what comes in between."""

from __future__ import annotations

import ssl

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import CERTIFICATE, PLAIN, AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.conftest import Client, Stage
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import V3, V5, frame, text

METHOD, DATA = Property.AUTHENTICATION_METHOD, Property.AUTHENTICATION_DATA
CONTINUE, AGAIN = 0x18, 0x19


class Word:
    """A mechanism of two steps: the server asks for a word."""

    refusal = ""

    def __init__(self, _peer: AuthPeer) -> None:
        self.identity: Identity | None = None
        self._asked = False

    async def respond(self, said: bytes) -> bytes:
        if not self._asked:
            self._asked = True
            return b"word?"
        if said != b"sesame":
            raise Unauthenticated("that is not the word")
        self.identity = Identity("ali")
        return b"welcome"


class Plain:
    """PLAIN of RFC 4616, with one user."""

    refusal = ""

    def __init__(self, _peer: AuthPeer) -> None:
        self.identity: Identity | None = None

    async def respond(self, said: bytes) -> bytes:
        if said != b"\0ali\0sesame":
            raise Unauthenticated("who is that?")
        self.identity = Identity("ali")
        return b""


def method(name: str, data: bytes | None = None) -> bytes:
    found = bytes((METHOD,)) + text(name)
    return found if data is None else found + bytes((DATA,)) + text(data)


def auth(reason: int, data: bytes | None = None, name: str = "WORD") -> bytes:
    properties = method(name, data)
    return frame(0xF0, bytes((reason,)) + peer.number(len(properties)) + properties)


def begin(stage: Stage, name: str = "WORD") -> tuple[Client, bytes]:
    stage.broker.access.mechanisms["WORD"] = Word
    return stage.stranger(V5), peer.connect("c", version=V5, properties=method(name, b"hello"))


def found_in(packet: peer.Received) -> dict[int, bytes]:
    return dict(peer.properties_in(packet.properties))


async def test_an_exchange_comes_before_connack(stage: Stage) -> None:
    """[MQTT-4.12.0-2], [MQTT-4.12.0-3], [MQTT-4.12.0-5]"""
    client, connect = begin(stage)
    (asked,) = await client.says(connect)
    assert (asked.kind, asked.reasons) == ("AUTH", (CONTINUE,))
    assert (found_in(asked)[METHOD], found_in(asked)[DATA]) == (b"WORD", b"word?")
    assert stage.services.sessions.connected == {}
    (connack,) = await client.says(auth(CONTINUE, b"sesame"))
    assert (connack.kind, connack.reasons) == ("CONNACK", (0,))
    assert (found_in(connack)[METHOD], found_in(connack)[DATA]) == (b"WORD", b"welcome")
    assert client.session.client is not None
    assert client.session.client.identity.name == "ali"


async def test_an_exchange_that_fails(stage: Stage) -> None:
    """[MQTT-4.12.0-4]"""
    client, connect = begin(stage)
    await client.says(connect)
    (connack,) = await client.says(auth(CONTINUE, b"open"))
    assert (connack.kind, connack.reasons) == ("CONNACK", (0x87,))
    assert client.line.ending == "that is not the word"
    assert stage.services.sessions.connected == {}


async def test_nothing_else_comes_before_connack(stage: Stage) -> None:
    """[MQTT-3.1.2-30]: only AUTH, for the exchange that goes on [MQTT-4.12.0-3], and DISCONNECT."""
    for packet in (
        peer.PINGREQ,
        peer.publish("t", version=V5),
        peer.subscribe(("t", 0), version=V5),
        auth(CONTINUE, b"sesame", "OTHER"),
        auth(AGAIN, b"sesame"),
    ):
        client, connect = begin(stage)
        await client.says(connect)
        (connack,) = await client.says(packet)
        assert (connack.kind, connack.reasons) == ("CONNACK", (0x82,))
        assert client.line.ending is not None
    client, connect = begin(stage)
    await client.says(connect)
    assert await client.says(peer.disconnect(0)) == []
    assert client.line.ending == "the client leaves"


async def test_packets_in_one_piece(stage: Stage) -> None:
    """A client that knows the answers may send them at once."""
    client, connect = begin(stage)
    publish = peer.publish("t", b"x", qos=1, number=1, version=V5)
    answers = await client.says(connect, auth(CONTINUE, b"sesame"), publish)
    assert [one.kind for one in answers] == ["AUTH", "CONNACK", "PUBACK"]


async def test_a_client_that_does_not_go_on_is_closed_by_the_link(stage: Stage) -> None:
    client, connect = begin(stage)
    await client.says(connect)
    assert client.session.silence_seconds_allowed == 0
    await client.is_cut()
    client, connect = begin(stage)
    await client.says(connect, auth(CONTINUE, b"sesame"))
    assert client.session.silence_seconds_allowed > 1e9


async def test_authentication_again(stage: Stage) -> None:
    """(4.12.1) Other packets are handled meanwhile; a failure ends the connection
    [MQTT-4.12.1-2].
    """
    client, connect = begin(stage)
    await client.says(connect, auth(CONTINUE, b"sesame"))
    (asked, pong) = await client.says(auth(AGAIN, b"hello"), peer.PINGREQ)
    assert (asked.reasons, found_in(asked)[DATA], pong.kind) == ((CONTINUE,), b"word?", "PINGRESP")
    (done,) = await client.says(auth(CONTINUE, b"sesame"))
    assert (done.kind, done.reasons, found_in(done)[DATA]) == ("AUTH", (0,), b"welcome")
    (_, refused) = await client.says(auth(AGAIN), auth(CONTINUE, b"open"))
    assert (refused.kind, refused.reasons) == ("DISCONNECT", (0x87,))
    assert client.line.ending is not None


async def test_authentication_again_makes_nobody_of_another_name(stage: Stage) -> None:
    """Its session, will and messages would be somebody else's."""

    class Named(Word):
        async def respond(self, said: bytes) -> bytes:
            self.identity = Identity(said.decode())
            return b""

    stage.broker.access.mechanisms["NAMED"] = Named
    client = stage.stranger(V5)
    properties = method("NAMED", b"ali")
    (connack,) = await client.says(peer.connect("c", version=V5, properties=properties))
    assert connack.reasons == (0,)
    (done,) = await client.says(auth(AGAIN, b"ali", "NAMED"))
    assert (done.kind, done.reasons) == ("AUTH", (0,))
    (refused,) = await client.says(auth(AGAIN, b"eve", "NAMED"))
    assert (refused.kind, refused.reasons) == ("DISCONNECT", (0x87,))
    assert client.session.client is not None
    assert client.session.client.identity.name == "ali"


async def test_auth_out_of_turn(stage: Stage) -> None:
    """[MQTT-4.12.1-1]: with the method of CONNECT, and only for an exchange that goes on."""
    for packet in (auth(AGAIN, name="OTHER"), auth(CONTINUE, b"sesame")):
        client, connect = begin(stage)
        await client.says(connect, auth(CONTINUE, b"sesame"))
        (refused,) = await client.says(packet)
        assert (refused.kind, refused.reasons) == ("DISCONNECT", (0x82,))


async def test_user_name_and_password(stage: Stage) -> None:
    """They count if there is a mechanism for them [MQTT-3.1.4-2]."""
    await stage.connected("1", username="ali", password=b"wrong")
    stage.broker.access.mechanisms["PLAIN"] = Plain
    for version, reason in ((V3, 4), (V5, 0x86)):
        client, (connack,) = await stage.connects(
            "2", version=version, username="ali", password=b"wrong"
        )
        assert connack.reasons == (reason,)
        assert client.line.ending is not None
        good = await stage.connected("3", version=version, username="ali", password=b"sesame")
        assert good.session.client is not None
        assert good.session.client.identity.name == "ali"
    nobody = await stage.connected("4")
    assert nobody.session.client is not None
    assert nobody.session.client.identity.name == ""


class ByCertificate:
    """A certificate that was shown, of `eve` or of nobody."""

    def __init__(self, peer: AuthPeer) -> None:
        self.identity: Identity | None = None
        self._der = peer.certificate

    async def respond(self, said: bytes) -> bytes:
        assert said == b""
        if self._der != b"of eve":
            raise Unauthenticated("the certificate has no name")
        self.identity = Identity("eve")
        return b""


class Shown:
    """TLS of a client that has shown a certificate."""

    def __init__(self, der: bytes | None) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self._der = der

    def getpeercert(self, *, binary_form: bool) -> bytes | None:
        assert binary_form
        return self._der


def with_certificate(stage: Stage, der: bytes | None) -> Client:
    stage.broker.access.mechanisms |= {CERTIFICATE: ByCertificate, PLAIN: Plain}
    stage.broker.access.nobody = None
    client = stage.stranger(V5)
    client.line.tls = Shown(der)  # type: ignore[assignment]
    return client


async def test_a_certificate_counts_if_connect_says_nothing(stage: Stage) -> None:
    for der, reason, name in ((b"of eve", 0, "eve"), (b"?", 0x87, ""), (None, 0x87, "")):
        client = with_certificate(stage, der)
        (connack,) = await client.says(peer.connect(f"c-{reason}", version=V5))
        assert (connack.kind, connack.reasons) == ("CONNACK", (reason,))
        found = client.session.client
        assert (found.identity.name if found is not None else "") == name


async def test_a_user_name_decides_over_a_certificate(stage: Stage) -> None:
    for password, reason in ((b"sesame", 0), (b"wrong", 0x86)):
        client = with_certificate(stage, b"of eve")
        said = peer.connect("c", version=V5, username="ali", password=password)
        (connack,) = await client.says(said)
        assert connack.reasons == (reason,)
        if reason == 0:
            assert client.session.client is not None
            assert client.session.client.identity.name == "ali"
