"""Pulsar's CONNECT and AUTH_RESPONSE out of order: a state machine says what it likes on
connections, and a small model says what has to come of it.

    connection      CONNECT                 AUTH_RESPONSE               another command
    new             known, asked for more,  closed without a word       closed without a word
                    or refused and closed
    asked           closed without a word   known, or refused and       closed without a word
                                            closed
    known           closed without a word   ignored, unless a new       served by its rights
                                            proof was asked for
"""

from __future__ import annotations

import time
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from interop_tests.hostile.conftest import rss
from interop_tests.raw import Raw
from interop_tests.security.rights.roles import TOPIC
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

from .machine import GROWTH_MAX, KINDS, PROOFS, RIGHT, SCRAM, THREE, WHICH, Machine, run_machine
from .proofs import PASSWORDS, SAMS_PASSWORD, Proof, signed
from .scram_client import ScramClient
from .test_mqtt_auth import gauge
from .visitors import source

UNKNOWN: Final = ("none", "", "athenz", "Token", "scram-sha-256", "tls")
LOOKUP_FAILED: Final = pb.CommandLookupTopicResponse.FAILED
UNASKED: Final = 2**64 - 1
"""The request id of errors that answer no request."""
REFRESH: Final = b"PulsarAuthRefresh"
MAY: Final = {"PRODUCER": {"root", "writer"}, "SUBSCRIBE": {"root"}, "LOOKUP": {"root", "writer"}}
COMMANDS: Final = (
    *("PING", "PRODUCER", "PRODUCER", "SUBSCRIBE", "SUBSCRIBE", "LOOKUP", "FLOW", "ACK"),
    *("SEND", "CONNECT"),
)
OUTCOMES: Final = {
    *("known", "refused", "asked", "too soon", "served", "not permitted", "another method"),
    *("ignored", "CONNECT again", "speaks for another", "noise"),
    "of no producer",
}
"""What it comes across, whatever it chooses."""


def connect(method: str, data: bytes, **more: Any) -> bytes:
    return peer.connect(auth_method_name=method, auth_data=data, **more)


def answer(method: str, data: bytes) -> bytes:
    response = pb.AuthData(auth_method_name=method, auth_data=data)
    return peer.frame("AUTH_RESPONSE", pb.CommandAuthResponse(response=response))


class Talk:
    """One connection, and what the model knows of it."""

    def __init__(self, server: Any) -> None:
        self.peer = Raw(server, source=source())
        self.is_new = True
        self.closed = False
        self.method = ""
        self.role: str | None = None
        self.scram: ScramClient | None = None
        """The exchange that waits for its proof."""
        self.name = ""
        self.requests = 0

    def ends(self) -> None:
        """Without a word."""
        assert self.peer.until_closed() == []
        self.closed = True

    def refused(self, code: int = pb.AuthenticationError) -> None:
        said = self.peer.receive()
        assert (said.kind, said.body.error, said.body.request_id) == ("ERROR", code, UNASKED)
        self.ends()


class ProofConversations(Machine[Talk]):
    """See the module's docstring."""

    def _opened(self) -> Talk:
        talk = Talk(self._server)
        self._all.append(talk)
        return talk

    # -- CONNECT ------------------------------------------------------------------------------

    @rule()
    def opens_and_says_nothing(self) -> None:
        self._opened()

    @rule(proof=PROOFS, at=st.floats(0, 1))
    def connects_by_token(self, proof: Proof, at: float) -> None:
        """In two pieces."""
        talk = self._opened()
        said = connect("token", proof.said)
        cut = int(len(said) * at)
        talk.peer.say(said[:cut]).say(said[cut:])
        self._answered(talk, proof.role)

    @rule(proof=st.sampled_from(PASSWORDS[:2]))
    def connects_by_password(self, proof: Proof) -> None:
        talk = self._opened()
        talk.peer.say(connect("basic", proof.said))
        self._answered(talk, proof.role)

    @precondition(lambda self: len(self._open()) > 2)
    @rule(method=st.sampled_from(UNKNOWN), proof=PROOFS)
    def connects_by_an_unknown_method(self, method: str, proof: Proof) -> None:
        """Which proves nothing, whatever is said."""
        talk = self._opened()
        talk.peer.say(connect(method, proof.said))
        self._answered(talk, None)

    @rule(
        method=st.sampled_from((*SCRAM[:1] * 3, *SCRAM)),
        name=st.sampled_from(("sam", "sam", "eve")),
    )
    def connects_by_scram(self, method: str, name: str) -> None:
        talk = self._opened()
        exchange = ScramClient(name, SAMS_PASSWORD)
        asked = talk.peer.ask(connect(method, exchange.first()))
        assert asked.kind == "AUTH_CHALLENGE"
        assert asked.body.challenge.auth_method_name == method
        exchange.hears(asked.body.challenge.auth_data)
        talk.is_new, talk.method, talk.scram, talk.name = False, method, exchange, name
        self._outcomes["asked"] += 1

    @rule(proof=st.sampled_from(RIGHT[:3]), data=st.booleans())
    def connects_for_somebody_else(self, proof: Proof, data: bool) -> None:
        """Who is no proxy speaks for himself, even if he can prove that he is the other, too."""
        talk = self._opened()
        more = {"original_auth_data": signed("root"), "original_auth_method": "token"}
        said = connect("token", proof.said, original_principal="root", **(more if data else {}))
        talk.peer.say(said)
        talk.refused(pb.AuthorizationError)
        self._outcomes["speaks for another"] += 1

    # -- AUTH_RESPONSE ------------------------------------------------------------------------

    @precondition(lambda self: self._open(lambda talk: talk.scram))
    @rule(which=WHICH, kind=st.sampled_from(KINDS), crossed=st.sampled_from((False,) * 4 + (True,)))
    def proves_scram(self, which: int, kind: str, crossed: bool) -> None:
        """Now and then as another method, for which a proof would do."""
        self._proves(self._one(which, lambda talk: talk.scram), kind, crossed=crossed)

    def _proves(self, talk: Talk, kind: str, *, crossed: bool) -> None:
        exchange = talk.scram
        assert exchange is not None
        if crossed:
            talk.peer.say(answer("token", signed("root")))
            talk.refused()
            self._outcomes["another method"] += 1
            return
        said = self._final(exchange, kind)
        talk.peer.say(answer(talk.method, said))
        proves = kind == "right" and talk.name == "sam" and talk.method == "SCRAM-SHA-256"
        self._answered(talk, "sam" if proves else None)
        if proves:
            self._recorded = said

    @precondition(lambda self: self._open())
    @rule(which=WHICH, proof=PROOFS, method=st.sampled_from(("token", "basic", *SCRAM)))
    def responds_unasked(self, which: int, proof: Proof, method: str) -> None:
        """Nobody becomes somebody else by that."""
        talk = self._one(which)
        if talk.scram is not None:
            method = "basic"
        talk.peer.say(answer(method, proof.said))
        if talk.role is not None:
            self._serves(talk, "PING")
            self._outcomes["ignored"] += 1
        elif talk.scram is not None:
            talk.refused()
            self._outcomes["another method"] += 1
        else:
            talk.ends()
            self._outcomes["too soon"] += 1

    def _answered(self, talk: Talk, role: str | None) -> None:
        """A proof is complete: it proves that role, or none."""
        talk.is_new, talk.scram = False, None
        if role is None:
            talk.refused()
            self._outcomes["refused"] += 1
            return
        assert talk.peer.receive().kind == "CONNECTED"
        talk.role = role
        self._outcomes["known"] += 1

    # -- other commands -----------------------------------------------------------------------

    @precondition(lambda self: self._open())
    @rule(which=WHICH, kind=st.sampled_from(COMMANDS))
    def command(self, which: int, kind: str) -> None:
        self._does(self._one(which), kind)

    def _does(self, talk: Talk, kind: str) -> None:
        if kind == "CONNECT":
            self._connects_again(talk)
        elif talk.role is None:
            talk.peer.say(self._said(talk, kind))
            talk.ends()
            self._outcomes["too soon"] += 1
        else:
            self._serves(talk, kind)

    @rule(kind=st.sampled_from(COMMANDS))
    def says_something_while_it_is_asked(self, kind: str) -> None:
        self.connects_by_scram("SCRAM-SHA-256", "sam")
        self._does(self._all[-1], kind)

    @precondition(lambda self: len(self._open()) > 2)
    @rule()
    def answers_by_another_method(self) -> None:
        self.connects_by_scram("SCRAM-SHA-256", "sam")
        self._proves(self._all[-1], "right", crossed=True)

    @rule(proof=THREE, kinds=st.lists(st.sampled_from(COMMANDS)))
    def connects_and_does_something(self, proof: Proof, kinds: list[str]) -> None:
        self.connects_by_token(proof, 1.0)
        for kind in kinds:
            if not self._all[-1].closed:
                self._does(self._all[-1], kind)

    @precondition(lambda self: len(self._open()) > 2)
    @rule(which=WHICH, noise=st.binary(min_size=8, max_size=100))
    def noise(self, which: int, noise: bytes) -> None:
        """A frame of a command that there is not."""
        talk = self._one(which)
        size = len(noise).to_bytes(4, "big")
        talk.peer.say((len(noise) + 4).to_bytes(4, "big") + size + b"\xff" + noise[1:])
        talk.ends()
        self._outcomes["noise"] += 1

    def _connects_again(self, talk: Talk) -> None:
        """While it is asked, or when it is known: it may not become somebody else."""
        if talk.is_new:
            return
        talk.peer.say(connect("token", signed("root")))
        talk.ends()
        self._outcomes["CONNECT again"] += 1

    @staticmethod
    def _said(talk: Talk, kind: str) -> bytes:
        talk.requests += 1
        number = talk.requests
        return {
            "PING": peer.ping,
            "PRODUCER": lambda: peer.producer(number, number, TOPIC),
            "SUBSCRIBE": lambda: peer.subscribe(number, number, TOPIC, f"s{number}", durable=False),
            "LOOKUP": lambda: peer.lookup(number, TOPIC),
            "SEND": lambda: peer.send(1_000, 0),
            "FLOW": lambda: peer.flow(1_000, 1),
            "ACK": lambda: peer.ack(1_000, (0, 0)),
        }[kind]()

    def _serves(self, talk: Talk, kind: str) -> None:
        """By its rights; what is for no consumer of its own changes nothing, and what is of no
        producer ends the connection.
        """
        talk.peer.say(self._said(talk, kind))
        if kind == "SEND":
            talk.ends()
            self._outcomes["of no producer"] += 1
            return
        if kind in ("FLOW", "ACK"):
            talk.peer.say(peer.ping())
            kind = "PING"
        said = talk.peer.receive()
        if kind == "PING":
            assert said.kind == "PONG"
            return
        code = said.body.error if said.kind in ("ERROR", "LOOKUP_RESPONSE") else 0
        served = said.kind in ("PRODUCER_SUCCESS", "SUCCESS") or (
            said.kind == "LOOKUP_RESPONSE"
            and said.body.response != pb.CommandLookupTopicResponse.FAILED
        )
        assert served is (talk.role in MAY[kind]), said
        assert served or code == pb.AuthorizationError
        self._outcomes["served" if served else "not permitted"] += 1


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_pulsar_conversations(server, beside) -> None:
    before = rss(server)
    connections = gauge(server, "pulsar_active_connections")
    outcomes = run_machine(ProofConversations, server, beside)
    assert set(outcomes) >= OUTCOMES, outcomes
    assert rss(server) - before < GROWTH_MAX
    assert gauge(server, "pulsar_active_connections") <= connections


def test_what_is_answered_when_a_new_proof_is_asked_for(server) -> None:
    """By those whose token has expired: as soon as they are known, they are asked at the same time.
    Whoever is asked is served until the answer is there.
    """
    writer, root = signed("writer"), signed("root")
    brief = signed("writer", exp=time.time() + 1)
    answers = {
        "right": answer("token", writer),
        "twice": answer("token", writer) + answer("token", root),
        "somebody else": answer("token", root),
        "wrong": answer("token", signed("writer", key=b"x" * 32)),
        "expired": answer("token", brief),
        "another method": answer("basic", b"bob:builder"),
        "nothing": answer("token", b""),
        "CONNECT": connect("token", writer),
    }
    good = ("right", "twice")
    talks = {name: Raw(server, source=source()) for name in answers}
    for talk in talks.values():
        assert talk.ask(connect("token", brief)).kind == "CONNECTED"
    for name, talk in talks.items():
        asked = talk.receive()
        assert asked.kind == "AUTH_CHALLENGE"
        challenge = asked.body.challenge
        assert (challenge.auth_method_name, challenge.auth_data) == ("token", REFRESH)
        assert talk.ask(peer.producer(1, 1, TOPIC)).kind == "PRODUCER_SUCCESS"
        talk.say(answers[name])
    for name, talk in talks.items():
        if name in good:
            assert talk.ask(peer.ping()).kind == "PONG"
            assert talk.ask(peer.subscribe(2, 2, TOPIC, "s")).kind == "ERROR", "still the writer"
            talk.socket.close()
            continue
        said = [(one.kind, one.body.error) for one in talk.until_closed()]
        assert said == ([] if name == "CONNECT" else [("ERROR", pb.AuthenticationError)]), name
        talk.socket.close()
