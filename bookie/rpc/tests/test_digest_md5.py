"""DIGEST-MD5, with the numbers of RFC 2831 section 4 in the words of BookKeeper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.rpc.digest_md5 import SAID_BYTES_MAX, DigestClient, DigestServer, secret_of
from magnetar.core.kernel.errors import Unauthenticated

REALM = "elwood.innosoft.com"
URI = "imap/elwood.innosoft.com"
NONCE, CLIENT_NONCE = "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk"
PEOPLE = {"chris": secret_of("chris", REALM, "secret")}


def server(nonce=NONCE, people=PEOPLE):
    made = DigestServer(people, REALM, URI, nonce)
    return made, made.respond(b"")


def client(password="secret", name="chris"):
    return DigestClient(name, password, URI, CLIENT_NONCE)


def test_the_example_of_the_rfc():
    here, challenge = server()
    there = client()
    said = there.respond(challenge)
    assert b"response=d388dad90d4bbd760a152321f2143af7" in said
    assert here.name == ""
    answer = here.respond(said)
    assert answer == b"rspauth=ea40f60335c427b5527b84dbabcdfffd"
    assert here.name == "chris"
    assert there.respond(answer) is None


def test_a_message_as_java_sends_it():
    here, _ = server()
    said = (
        'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",'
        'nc=00000001,cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",maxbuf=65536,'
        "response=d388dad90d4bbd760a152321f2143af7,qop=auth"
    )
    here.respond(said.encode())
    assert here.name == "chris"


def test_names_with_quotes():
    name = 'a"b\\c'
    here, challenge = server(people={name: secret_of(name, REALM, "x")})
    here.respond(client("x", name).respond(challenge))
    assert here.name == name


@pytest.mark.parametrize("wrong", [client("guess"), client(name="nobody")])
def test_a_wrong_password_and_an_unknown_name_are_told_alike(wrong):
    here, challenge = server()
    with pytest.raises(Unauthenticated, match="an unknown name, or a wrong password"):
        here.respond(wrong.respond(challenge))
    assert here.name == ""


def test_the_secret_of_an_unknown_name_is_not_what_it_is_compared_with():
    here, _ = server()
    there = DigestClient("nobody", "", URI, CLIENT_NONCE)
    said = there.respond(b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth"')
    with pytest.raises(Unauthenticated, match="an unknown name"):
        here.respond(said)


def test_a_proof_is_for_one_exchange():
    here, challenge = server()
    said = client().respond(challenge)
    here.respond(said)
    with pytest.raises(Unauthenticated, match="the exchange is over"):
        here.respond(said)
    other, _ = server(nonce="another")
    with pytest.raises(Unauthenticated, match="wrong nonce"):
        other.respond(said)


def test_after_a_wrong_step_there_is_no_other():
    here, challenge = server()
    with pytest.raises(Unauthenticated):
        here.respond(client("guess").respond(challenge))
    with pytest.raises(Unauthenticated, match="the exchange is over"):
        here.respond(client().respond(challenge))


@pytest.mark.parametrize(
    ("of", "instead"),
    [
        (b'realm="elwood', b'realm="jake'),
        (b"nc=00000001", b"nc=00000002"),
        (b"qop=auth", b"qop=auth-int"),
        (b'digest-uri="imap', b'digest-uri="pop'),
        (b'cnonce="OA6MHXh6VqTrRk"', b'cnonce=""'),
        (b"charset=utf-8,", b'authzid="root",'),
    ],
)
def test_what_is_not_of_this_exchange(of, instead):
    here, challenge = server()
    said = client().respond(challenge)
    assert of in said
    with pytest.raises(Unauthenticated, match="a wrong"):
        here.respond(said.replace(of, instead))


@pytest.mark.parametrize("said", [b"x", b"a=1,a=2", b'a="', b"\xff=1", b"a=1 b=2", bytes(5000)])
def test_what_makes_no_sense(said):
    here, _ = server()
    with pytest.raises(Unauthenticated):
        here.respond(said)
    with pytest.raises(Unauthenticated):
        client().respond(said)


@given(st.binary(max_size=SAID_BYTES_MAX))
def test_any_bytes_are_refused_and_nothing_else(said):
    here, _ = server()
    with pytest.raises(Unauthenticated):
        here.respond(said)
    assert here.name == ""


def test_the_client_speaks_first_but_says_nothing():
    with pytest.raises(Unauthenticated, match="begins with a challenge"):
        DigestServer(PEOPLE, REALM, URI, NONCE).respond(b"x")


def test_a_server_that_does_not_know_the_password():
    _, challenge = server()
    there = client()
    there.respond(challenge)
    with pytest.raises(Unauthenticated, match="does not know the password"):
        there.respond(b"rspauth=ea40f60335c427b5527b84dbabcdfffe")
