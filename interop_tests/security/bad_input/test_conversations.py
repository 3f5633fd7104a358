"""SASL out of order: a state machine says what it likes on connections of Kafka, and a small model
says what has to come of it.

    connection      handshake                   token                       request
    new             shaken, or closed           ILLEGAL_SASL_STATE, closed  closed without a word
    shaken          shaken anew, or closed      known, asked for more, or   closed without a word
                                                refused and closed
    known           as before, by its own       as shaken; a refusal or     served by its rights
                    mechanism only              another name closes

A frame beyond `HELLO_BYTES_MAX` closes a connection that is not known yet, without a word.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from interop_tests.hostile.test_kafka_bytes import Peer
from interop_tests.security.rights.test_kafka_matrix import REFUSED, codes, request_of
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.kafka.tests.frame import framed
from magnetar.wire.kafka.wire import HELLO_BYTES_MAX

from .machine import RIGHT, SCRAM, SMALL, THREE, WHICH, Machine, run_machine
from .proofs import PASSWORDS, SAMS_PASSWORD, Proof
from .scram_client import ScramClient
from .visitors import source

OFFERED: Final = ("PLAIN", "OAUTHBEARER", *SCRAM)
UNKNOWN: Final = ("GSSAPI", "", "plain", "SCRAM-SHA-1", "SCRAM-SHA-256-PLUS", "PLAIN\0", "P" * 999)
NONE, UNSUPPORTED, ILLEGAL_STATE, FAILED = 0, 33, 34, 58
MAY: Final = {
    ApiKey.DESCRIBE_QUORUM: {"root"},
    ApiKey.PRODUCE: {"root", "writer"},
}


def plain(proof: Proof) -> bytes:
    """As PLAIN has it, of a token."""
    return b"\0x\0token:" + proof.said


def bearer(proof: Proof) -> bytes:
    return b"n,,\x01auth=Bearer " + proof.said + b"\x01\x01"


WAYS: Final = {"PLAIN": plain, "OAUTHBEARER": bearer}
SELDOM: Final = st.sampled_from((False,) * 7 + (True,))
PROOFS: Final = st.one_of(THREE, st.sampled_from(SMALL))
GS2: Final = ("n,,", "n,,", "y,,", "p=tls-unique,,", "n,a=admin,")
KINDS: Final = ("right", "right", "replayed", "bound", "nonce", "first")
OUTCOMES: Final = {
    *("unsupported", "out of turn", "refused", "known", "known again"),
    *("asked too soon", "served", "not permitted"),
}
"""What it comes across, whatever it chooses; it sees more than that."""


class Talk:
    """One connection, and what the model knows of it."""

    def __init__(self, server: Any) -> None:
        self.peer = Peer(server, source())
        self.closed = False
        self.mechanism = ""
        """Of the handshake that a token belongs to; empty if there is none."""
        self.proven_by = ""
        self.role: str | None = None
        self.gs2 = self.name = ""
        """With which an exchange of SCRAM has begun."""
        self.scram: ScramClient | None = None
        """The exchange that waits for its proof."""
        self.denied = False
        """OAUTHBEARER has told why it refuses; whatever comes next is the end."""

    def ends(self) -> None:
        assert self.peer.is_closed()
        self.closed = True


def by_token(talk: Talk) -> bool:
    return talk.mechanism in WAYS


def begins_by_scram(talk: Talk) -> bool:
    return talk.mechanism in SCRAM and talk.scram is None


class Conversations(Machine[Talk]):
    """See the module's docstring."""

    @rule(mechanism=st.sampled_from(OFFERED))
    def opens(self, mechanism: str) -> None:
        self._opened(mechanism)

    @rule(mechanism=st.sampled_from(list(WAYS)), proof=st.sampled_from(RIGHT))
    def opens_and_is_known(self, mechanism: str, proof: Proof) -> None:
        self._says(self._opened(mechanism), WAYS[mechanism](proof), proof.role)

    @rule(
        proof=st.sampled_from(RIGHT[:3]),
        anew=st.sampled_from(RIGHT[:3]),
        key=st.sampled_from(sorted(MAY)),
    )
    def asks_and_proves_anew(self, proof: Proof, anew: Proof, key: int) -> None:
        """As the same or somebody else."""
        talk = self._opened("PLAIN")
        self._says(talk, plain(proof), proof.role)
        self._asks(talk, key)
        self._shakes(talk, "PLAIN")
        self._says(talk, plain(anew), anew.role)

    @rule(mechanism=st.sampled_from(SCRAM[:1] * 3 + SCRAM), name=st.sampled_from(("sam", "eve")))
    def opens_and_begins_scram(self, mechanism: str, name: str) -> None:
        self._begins(self._opened(mechanism), name, "n,,")

    def _opened(self, mechanism: str) -> Talk:
        talk = Talk(self._server)
        self._all.append(talk)
        self._shakes(talk, mechanism)
        return talk

    @rule()
    def opens_without_a_handshake(self) -> None:
        self._all.append(Talk(self._server))

    @precondition(lambda self: self._open())
    @rule(which=WHICH, mechanism=st.sampled_from(OFFERED + UNKNOWN))
    def shakes_anew(self, which: int, mechanism: str) -> None:
        self._shakes(self._one(which), mechanism)

    @precondition(lambda self: self._open(lambda talk: talk.role))
    @rule(which=WHICH)
    def shakes_as_before(self, which: int) -> None:
        talk = self._one(which, lambda talk: talk.role)
        self._shakes(talk, talk.proven_by)

    def _shakes(self, talk: Talk, mechanism: str) -> None:
        code = talk.peer.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code
        known = talk.role is not None
        offered = (talk.proven_by,) if known else OFFERED
        talk.mechanism, talk.scram, talk.denied = "", None, False
        if mechanism in offered:
            assert code == NONE
            talk.mechanism = mechanism
        else:
            assert code == UNSUPPORTED
            self._outcomes["unsupported"] += 1
            if not known:
                talk.ends()

    @precondition(lambda self: self._open(by_token))
    @rule(which=WHICH, proof=PROOFS, crossed=SELDOM, at=st.floats(0, 1))
    def token(self, which: int, proof: Proof, crossed: bool, at: float) -> None:
        """Said in two pieces; now and then in the other mechanism's way."""
        talk = self._one(which, by_token)
        mechanism = next(each for each in WAYS if (each == talk.mechanism) is not crossed)
        self._says(talk, WAYS[mechanism](proof), None if crossed else proof.role, at)

    @precondition(lambda self: self._open())
    @rule(which=WHICH, proof=st.sampled_from(PASSWORDS), said=st.none() | st.binary(max_size=100))
    def password_or_noise(self, which: int, proof: Proof, said: bytes | None) -> None:
        talk = self._one(which)
        if said is not None:
            self._says(talk, said, None)
            return
        name, colon, password = proof.said.partition(b":")
        said = b"\0" + name + (b"\0" if colon else b"") + password
        self._says(talk, said, proof.role if talk.mechanism == "PLAIN" else None)

    @precondition(lambda self: self._open(begins_by_scram))
    @rule(which=WHICH, name=st.sampled_from(("sam", "eve", "root")), gs2=st.sampled_from(GS2))
    def begins_scram(self, which: int, name: str, gs2: str) -> None:
        talk = self._one(which, begins_by_scram)
        self._begins(talk, name, gs2)

    def _begins(self, talk: Talk, name: str, gs2: str) -> None:
        """Whoever begins well is asked for the proof, whether there is such a name or not."""
        exchange = ScramClient(name, SAMS_PASSWORD)
        answer = talk.peer.ask(SaslAuthenticateRequest(auth_bytes=exchange.first(gs2)), 2)
        if gs2 in ("n,,", "y,,"):
            assert answer.error_code == NONE
            assert answer.auth_bytes
            exchange.hears(answer.auth_bytes)
            talk.scram, talk.gs2, talk.name = exchange, gs2, name
        else:  # channel binding, which there is not, and the name of somebody else
            assert answer.error_code == FAILED
            talk.ends()

    @precondition(lambda self: self._open(lambda talk: talk.scram))
    @rule(which=WHICH, kind=st.sampled_from(KINDS))
    def proves_scram(self, which: int, kind: str) -> None:
        talk = self._one(which, lambda talk: talk.scram)
        exchange = talk.scram
        assert exchange is not None
        said = {
            "right": lambda: exchange.final(talk.gs2),
            "replayed": lambda: self._recorded,
            "bound": lambda: exchange.final("p=tls-unique,,"),
            "nonce": lambda: exchange.final(talk.gs2, nonce="nonce0"),
            "first": lambda: exchange.first(),
        }[kind]()
        proves = kind == "right" and talk.name == "sam" and talk.mechanism == "SCRAM-SHA-256"
        self._outcomes[f"scram {kind}"] += 1
        self._says(talk, said, "sam" if proves else None)
        if proves and not talk.closed:
            self._recorded = said

    @precondition(lambda self: self._open())
    @rule(which=WHICH, key=st.sampled_from(sorted(MAY)))
    def request(self, which: int, key: int) -> None:
        self._asks(self._one(which), key)

    def _asks(self, talk: Talk, key: int) -> None:
        """Before it is known who asks, nothing is said; then rights decide."""
        if talk.role is None:
            talk.peer.say(framed(*request_of(key)))
            assert talk.peer.socket.recv(100) == b""
            talk.closed = True
            self._outcomes["asked too soon"] += 1
            return
        served = REFUSED.isdisjoint(codes(talk.peer.ask(*request_of(key))))
        assert served is (talk.role in MAY[key])
        self._outcomes["served" if served else "not permitted"] += 1

    @precondition(lambda self: len(self._open()) > 2)
    @rule(which=WHICH)
    def another_protocol(self, which: int) -> None:
        talk = self._one(which)
        talk.peer.say(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        talk.ends()

    def _says(self, talk: Talk, said: bytes, role: str | None, at: float = 0.0) -> None:
        """Say a token of SASL, which proves that role or none."""
        request = SaslAuthenticateRequest(auth_bytes=said)
        frame = framed(request, 2)
        cut = int(len(frame) * at)
        talk.peer.say(frame[:cut]).say(frame[cut:])
        known = talk.role is not None
        if not known and len(frame) - 4 > HELLO_BYTES_MAX:
            self._outcomes["too large"] += 1
            talk.ends()
            return
        answer = talk.peer.hear(SaslAuthenticateRequest.KEY, 2)
        if not talk.mechanism:
            assert answer.error_code == ILLEGAL_STATE
            self._outcomes["out of turn"] += 1
            if not known:
                talk.ends()
            return
        if talk.mechanism == "OAUTHBEARER" and role is None and not talk.denied:
            assert (answer.error_code, talk.role) == (NONE, talk.role)
            assert answer.auth_bytes == b'{"status":"invalid_token"}'
            talk.denied = True
            self._outcomes["told why"] += 1
            return
        talk.scram = None
        if role is None or talk.denied or (known and role != talk.role):
            assert answer.error_code == FAILED
            self._outcomes["another name" if known and role else "refused"] += 1
            talk.ends()
            return
        assert answer.error_code == NONE, answer.error_message
        self._outcomes["known again" if known else "known"] += 1
        talk.role, talk.proven_by, talk.mechanism = role, talk.mechanism, ""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_conversations(server, beside) -> None:
    outcomes = run_machine(Conversations, server, beside, examples=25, phases=tuple(Phase))
    assert set(outcomes) >= OUTCOMES, outcomes


@pytest.mark.parametrize("kind", sorted({*KINDS}))
@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram(server, kind: str, mechanism: str) -> None:
    """The right proof, and by turns one that was said before, with channel binding, for another
    nonce, and none at all; by the mechanism of the credential, and by the other one.
    """
    talks = Conversations(server, lambda: None, Counter())
    talks.opens_and_begins_scram("SCRAM-SHA-256", "sam")
    talks.proves_scram(0, "right")
    talks.opens_and_begins_scram(mechanism, "sam")
    talks.proves_scram(1, kind)
    for talk in talks._all:
        talk.peer.socket.close()
