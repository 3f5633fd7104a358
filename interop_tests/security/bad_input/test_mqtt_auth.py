"""MQTT's AUTH out of order: a state machine says what it likes on connections of 3.1.1 and 5.0, and
a small model says what has to come of it.

    connection      CONNECT                 AUTH                        another packet
    new             known, asked for more,  closed without a word       closed without a word
                    or refused and closed
    asked           closed                  known, asked again, or      refused and closed; the end
                                            refused and closed          without a word of DISCONNECT
    known           closed                  of its own method, and in   served by its rights
                                            turn: another exchange;
                                            else closed

`known` connections may be in the middle of another exchange; their packets are served meanwhile.
Clients of 5.0 are told why they are closed, in CONNACK or DISCONNECT; those of 3.1.1 have no AUTH.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final

import httpx
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from interop_tests.hostile.conftest import rss
from interop_tests.hostile.mqtt_peer import MqttPeer
from magnetar.wire.mqtt.tests import peer
from magnetar.wire.mqtt.tests.peer import PINGREQ, V3, V5, Received, frame, text

from .machine import (
    GROWTH_MAX,
    KINDS,
    PROOFS,
    RIGHT,
    SCRAM,
    SMALL,
    THREE,
    WHICH,
    Machine,
    run_machine,
)
from .proofs import PASSWORDS, SAMS_PASSWORD, Proof, signed
from .scram_client import ScramClient
from .visitors import source

BY_TOKEN: Final = ("token", "PLAIN", "OAUTHBEARER")
UNKNOWN: Final = ("GSSAPI", "scram-sha-256", "SCRAM-SHA-256-PLUS", "tls", "")
METHOD, DATA = 0x15, 0x16
GOES_ON, AGAIN = 0x18, 0x19
SUCCESS, PROTOCOL_ERROR, BAD_PASSWORD, NOT_AUTHORIZED, BAD_METHOD = 0, 0x82, 0x86, 0x87, 0x8C
MAY_WRITE: Final = ("root", "writer")
MAY_READ: Final = ("root",)
NAMES: Final = st.sampled_from(("sam", "sam", "eve"))
PACKETS: Final = (
    *("PINGREQ", "PUBLISH", "PUBLISH", "SUBSCRIBE", "SUBSCRIBE", "PUBACK", "UNSUBSCRIBE"),
    "CONNECT",
)
OUTCOMES: Final = {
    *("known", "refused", "no such method", "asked", "known again", "another name", "out of turn"),
    *("too soon", "served", "not permitted", "CONNECT again", "AUTH before 5.0", "left"),
    *("packets during an exchange", "told why"),
}
"""What it comes across, whatever it chooses."""


def said_by(method: str, proof: Proof) -> bytes:
    """A token as a method has it."""
    begin = {"PLAIN": b"\0x\0token:", "OAUTHBEARER": b"n,,\x01auth=Bearer "}.get(method, b"")
    return begin + proof.said + (b"\x01\x01" if method == "OAUTHBEARER" else b"")


def properties(method: str | None, data: bytes | None) -> bytes:
    found = b"" if method is None else bytes((METHOD,)) + text(method)
    return found if data is None else found + bytes((DATA,)) + text(data)


def auth(reason: int, method: str | None, data: bytes | None = None) -> bytes:
    about = properties(method, data)
    return frame(0xF0, bytes((reason,)) + peer.number(len(about)) + about)


def data_in(packet: Received) -> bytes:
    return dict(peer.properties_in(packet.properties)).get(DATA, b"")


class Talk:
    """One connection, and what the model knows of it."""

    def __init__(self, server: Any, version: int, client_id: str) -> None:
        self.peer = MqttPeer(server, version, source=source())
        self.version, self.client_id = version, client_id
        self.is_new = True
        self.closed = False
        self.method = ""
        """Of CONNECT."""
        self.role: str | None = None
        self.exchanges = False
        """Whether an exchange has begun, and is not over."""
        self.scram: ScramClient | None = None
        self.name = ""
        """Whose proof the exchange of SCRAM is about."""
        self.denied = False
        """OAUTHBEARER has told why it refuses; whatever comes next is the end."""

    def ends(self, kind: str = "", reason: int = 0) -> None:
        """The server says at most that it closes, and why; nothing if `kind` is empty."""
        found = [(one.kind, one.reasons) for one in self.peer.ends()]
        self.closed = True
        if not kind or (self.version != V5 and kind == "DISCONNECT"):
            assert found == []
        else:
            assert found == [(kind, (reason,))]

    def refused(self, reason: int) -> None:
        """As CONNACK or DISCONNECT has it."""
        self.ends("CONNACK" if self.role is None else "DISCONNECT", reason)


class AuthConversations(Machine[Talk]):
    """See the module's docstring."""

    def _opened(self, version: int = V5) -> Talk:
        talk = Talk(self._server, version, f"of-the-machine-{len(self._all)}")
        self._all.append(talk)
        return talk

    # -- CONNECT ------------------------------------------------------------------------------

    @rule(version=st.sampled_from((V3, V5)))
    def opens_and_says_nothing(self, version: int) -> None:
        self._opened(version)

    @rule(version=st.sampled_from((V3, V5)), proof=PROOFS | st.sampled_from(PASSWORDS[:3]))
    def connects_by_password(self, version: int, proof: Proof) -> None:
        talk = self._opened(version)
        name, colon, password = (
            proof.said.partition(b":") if proof in PASSWORDS else (b"x", b":", proof.said)
        )
        fields = {"username": name.decode(), "password": password if colon else None}
        talk.peer.say(peer.connect(talk.client_id, version=version, **fields))
        bad = BAD_PASSWORD if version == V5 else 4
        self._answered(talk, proof.role, bad)

    @precondition(lambda self: len(self._open()) > 2)
    @rule(version=st.sampled_from((V3, V5)))
    def connects_as_nobody(self, version: int) -> None:
        talk = self._opened(version)
        talk.peer.say(peer.connect(talk.client_id, version=version))
        self._answered(talk, None, NOT_AUTHORIZED if version == V5 else 5)

    @rule(method=st.sampled_from(BY_TOKEN), proof=PROOFS, named=st.booleans())
    def connects_by_token(self, method: str, proof: Proof, named: bool) -> None:
        """By a method of one message; a user name besides decides nothing."""
        talk = self._connects(method, said_by(method, proof), {"username": "root"} if named else {})
        self._said_token(talk, proof.role)

    @rule(
        method=st.sampled_from((*SCRAM[:1] * 3, *SCRAM)),
        name=NAMES,
    )
    def connects_by_scram(self, method: str, name: str) -> None:
        talk = self._opened()
        self._begins_scram(talk, method, name)

    @precondition(lambda self: len(self._open()) > 2)
    @rule(method=st.sampled_from(UNKNOWN))
    def connects_by_an_unknown_method(self, method: str) -> None:
        talk = self._connects(method, b"hello")
        talk.refused(BAD_METHOD)
        self._outcomes["no such method"] += 1

    def _connects(self, method: str, data: bytes, fields: dict[str, Any] | None = None) -> Talk:
        talk = self._opened()
        self._connects_with(talk, method, data, fields or {})
        return talk

    @staticmethod
    def _connects_with(talk: Talk, method: str, data: bytes, fields: dict[str, Any]) -> None:
        talk.method = method
        about = properties(method, data)
        talk.peer.say(peer.connect(talk.client_id, version=V5, properties=about, **fields))

    # -- what comes of a proof ----------------------------------------------------------------

    def _answered(self, talk: Talk, role: str | None, bad: int = NOT_AUTHORIZED) -> None:
        """A proof is complete: it proves that role, or none."""
        talk.is_new = talk.exchanges = False
        talk.scram = None
        before = talk.role
        if role is None or (before is not None and role != before):
            talk.refused(bad)
            self._outcomes["another name" if role else "refused"] += 1
            return
        answer = talk.peer.take()
        expected = "CONNACK" if before is None else "AUTH"
        assert (answer.kind, answer.reasons) == (expected, (SUCCESS,))
        talk.role = role
        self._outcomes["known" if before is None else "known again"] += 1

    def _asked(self, talk: Talk) -> bytes:
        """The server wants to hear more."""
        answer = talk.peer.take()
        assert (answer.kind, answer.reasons) == ("AUTH", (GOES_ON,))
        talk.is_new, talk.exchanges = False, True
        self._outcomes["asked"] += 1
        return data_in(answer)

    def _said_token(self, talk: Talk, role: str | None) -> None:
        """A token was said: OAUTHBEARER tells why it refuses, and waits for another message."""
        if talk.method != "OAUTHBEARER" or role is not None or talk.denied:
            self._answered(talk, None if talk.denied else role)
            return
        assert self._asked(talk) == b'{"status":"invalid_token"}'
        talk.denied = True
        self._outcomes["told why"] += 1

    def _begins_scram(self, talk: Talk, method: str, name: str) -> None:
        exchange = ScramClient(name, SAMS_PASSWORD)
        if talk.role is None:
            self._connects_with(talk, method, exchange.first(), {})
        else:
            talk.peer.say(auth(AGAIN, method, exchange.first()))
        exchange.hears(self._asked(talk))
        talk.scram, talk.name = exchange, name

    # -- AUTH ---------------------------------------------------------------------------------

    @precondition(lambda self: self._open(lambda talk: talk.scram))
    @rule(which=WHICH, kind=st.sampled_from(KINDS))
    def proves_scram(self, which: int, kind: str) -> None:
        self._proves(self._one(which, lambda talk: talk.scram), kind)

    def _proves(self, talk: Talk, kind: str) -> None:
        exchange = talk.scram
        assert exchange is not None
        said = self._final(exchange, kind)
        talk.peer.say(auth(GOES_ON, talk.method, said))
        proves = kind == "right" and talk.name == "sam" and talk.method == "SCRAM-SHA-256"
        self._answered(talk, "sam" if proves else None)
        if proves and not talk.closed:
            self._recorded = said

    @precondition(lambda self: self._open(lambda talk: talk.role and talk.method))
    @rule(which=WHICH, proof=PROOFS, name=NAMES)
    def begins_again(self, which: int, proof: Proof, name: str) -> None:
        """Unless an exchange is going on."""
        talk = self._one(which, lambda talk: talk.role and talk.method)
        if talk.exchanges:
            talk.peer.say(auth(AGAIN, talk.method, b"x"))
            talk.refused(PROTOCOL_ERROR)
            self._outcomes["out of turn"] += 1
        elif talk.method in SCRAM:
            self._begins_scram(talk, talk.method, name)
        else:
            talk.peer.say(auth(AGAIN, talk.method, said_by(talk.method, proof)))
            self._said_token(talk, proof.role)

    @rule(version=st.sampled_from((V3, V5)), proof=THREE, kinds=st.lists(st.sampled_from(PACKETS)))
    def connects_and_does_something(self, version: int, proof: Proof, kinds: list[str]) -> None:
        self.connects_by_password(version, proof)
        for kind in kinds:
            if not self._all[-1].closed:
                self._sends(self._all[-1], kind)

    @precondition(lambda self: len(self._open()) > 2)
    @rule(version=st.sampled_from((V3, V5)), last=st.sampled_from(("AUTH", "CONNECT", "leaves")))
    def connects_and_soon_ends(self, version: int, last: str) -> None:
        self.connects_by_password(version, RIGHT[0])
        talk = self._all[-1]
        if last == "leaves":
            self._leaves(talk)
        elif last == "CONNECT":
            self._sends(talk, last)
        else:
            self._says_auth_out_of_turn(talk, AGAIN, "token")

    @precondition(lambda self: len(self._open()) > 2)
    @rule(kind=st.sampled_from(PACKETS))
    def says_something_while_it_is_asked(self, kind: str) -> None:
        self.connects_by_scram("SCRAM-SHA-256", "sam")
        self._sends(self._all[-1], kind)

    @precondition(lambda self: len(self._open()) > 1)
    @rule(proof=st.sampled_from([one for one in SMALL if one.role is None]))
    def connects_by_a_bearer_token_that_is_wrong(self, proof: Proof) -> None:
        self.connects_by_token("OAUTHBEARER", proof, named=False)

    @rule(kinds=st.lists(st.sampled_from(PACKETS[:-1]), min_size=1), kind=st.sampled_from(KINDS))
    def does_something_during_an_exchange(self, kinds: list[str], kind: str) -> None:
        """Of a client that is known, and proves who it is anew."""
        talk = self._opened()
        self._begins_scram(talk, "SCRAM-SHA-256", "sam")
        self._proves(talk, "right")
        self._begins_scram(talk, "SCRAM-SHA-256", "sam")
        for each in kinds:
            self._sends(talk, each)
        self._proves(talk, kind)

    @rule(method=st.sampled_from(BY_TOKEN), proof=THREE, anew=THREE)
    def connects_and_proves_anew(self, method: str, proof: Proof, anew: Proof) -> None:
        """As the same or somebody else."""
        self.connects_by_token(method, proof, named=False)
        talk = self._all[-1]
        talk.peer.say(auth(AGAIN, method, said_by(method, anew)))
        self._said_token(talk, anew.role)

    @precondition(lambda self: self._open(lambda talk: talk.denied))
    @rule(which=WHICH, proof=PROOFS)
    def goes_on_after_a_refusal(self, which: int, proof: Proof) -> None:
        """Even with a token that is right."""
        talk = self._one(which, lambda talk: talk.denied)
        talk.peer.say(auth(GOES_ON, talk.method, said_by(talk.method, proof)))
        self._answered(talk, None)

    @precondition(lambda self: len(self._open(lambda talk: not talk.is_new)) > 2)
    @rule(
        which=WHICH,
        reason=st.sampled_from((GOES_ON, AGAIN)),
        method=st.sampled_from(("token", *SCRAM)),
    )
    def auth_out_of_turn(self, which: int, reason: int, method: str) -> None:
        """Of another method, or of none, or for an exchange that does not go on."""
        talk = self._one(which, lambda talk: not talk.is_new)
        self._says_auth_out_of_turn(talk, reason, method)

    def _says_auth_out_of_turn(self, talk: Talk, reason: int, method: str) -> None:
        in_turn = talk.exchanges is (reason == GOES_ON)
        if method == talk.method and in_turn:
            method = "PLAIN"
        talk.peer.say(auth(reason, method, signed("root")))
        if talk.version != V5:
            talk.ends()
            self._outcomes["AUTH before 5.0"] += 1
            return
        talk.refused(PROTOCOL_ERROR)
        self._outcomes["out of turn"] += 1

    @precondition(lambda self: self._open(lambda talk: talk.is_new))
    @rule(which=WHICH)
    def auth_before_connect(self, which: int) -> None:
        talk = self._one(which, lambda talk: talk.is_new)
        talk.peer.say(auth(GOES_ON, "token", signed("root")))
        talk.ends()
        self._outcomes["out of turn"] += 1

    # -- other packets ------------------------------------------------------------------------

    @precondition(lambda self: self._open())
    @rule(which=WHICH, kind=st.sampled_from(PACKETS))
    def packet(self, which: int, kind: str) -> None:
        self._sends(self._one(which), kind)

    def _sends(self, talk: Talk, kind: str) -> None:
        says, version = talk.peer.say, talk.version
        if kind == "CONNECT" and talk.is_new:
            kind = "PUBLISH"
        packets = {
            "PINGREQ": PINGREQ,
            "PUBLISH": peer.publish("t/machine", b"x", qos=1, number=7, version=version),
            "SUBSCRIBE": peer.subscribe(("t/machine", 0), number=8, version=version),
            "UNSUBSCRIBE": peer.unsubscribe("t/machine", number=9, version=version),
            "PUBACK": peer.acknowledge("PUBACK", 1),
            "CONNECT": peer.connect(talk.client_id, version=version),
        }
        says(packets[kind])
        if talk.role is None:
            self._came_too_soon(talk, kind)
        elif kind == "CONNECT":
            talk.refused(PROTOCOL_ERROR)
            self._outcomes["CONNECT again"] += 1
        else:
            self._served(talk, talk.role, kind)

    def _came_too_soon(self, talk: Talk, kind: str) -> None:
        """Before it is known who says it, nothing is done. The wire closes for a second CONNECT
        before any answer, and has no packet to say so.
        """
        if talk.is_new or kind == "CONNECT":
            talk.ends()
        else:
            talk.refused(PROTOCOL_ERROR)
        self._outcomes["too soon"] += 1

    def _served(self, talk: Talk, role: str, kind: str) -> None:
        if talk.exchanges:
            self._outcomes["packets during an exchange"] += 1
        if kind == "PUBACK":  # of nothing: no answer; the next one tells that it is still there
            talk.peer.say(PINGREQ)
            kind = "PINGREQ"
        answer = talk.peer.take()
        expected = {"PINGREQ": "PINGRESP", "PUBLISH": "PUBACK", "SUBSCRIBE": "SUBACK"}
        assert answer.kind == expected.get(kind, "UNSUBACK")
        if kind not in ("PUBLISH", "SUBSCRIBE"):
            return
        may = role in (MAY_WRITE if kind == "PUBLISH" else MAY_READ)
        if talk.version == V5:
            assert (NOT_AUTHORIZED not in answer.reasons) is may
        elif kind == "SUBSCRIBE":
            assert answer.reasons == ((0,) if may else (0x80,))
        self._outcomes["served" if may else "not permitted"] += 1
        if may and kind == "SUBSCRIBE":
            talk.peer.say(peer.unsubscribe("t/machine", number=9, version=talk.version))
            talk.peer.take_until("UNSUBACK")

    @precondition(lambda self: len(self._open(lambda talk: not talk.is_new)) > 3)
    @rule(which=WHICH)
    def leaves(self, which: int) -> None:
        self._leaves(self._one(which, lambda talk: not talk.is_new))

    def _leaves(self, talk: Talk) -> None:
        talk.peer.say(peer.disconnect())
        talk.ends()
        self._outcomes["left"] += 1


def gauge(server: Any, name: str) -> float:
    page = httpx.get(
        f"{server.http_url}/metrics", headers={"authorization": f"Bearer {signed('root').decode()}"}
    ).text
    found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE)
    assert found is not None, page
    return float(found[1])


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_mqtt_conversations(server, beside) -> None:
    before = rss(server)
    outcomes = run_machine(AuthConversations, server, beside)
    assert set(outcomes) >= OUTCOMES, outcomes
    assert rss(server) - before < GROWTH_MAX
    end = time.monotonic() + 15
    while gauge(server, "magnetar_mqtt_clients") or gauge(server, "magnetar_mqtt_sessions_asleep"):
        assert time.monotonic() < end, "somebody is remembered"
