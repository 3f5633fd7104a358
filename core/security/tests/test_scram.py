"""SCRAM by the examples of the RFCs, and by what others might say."""

from __future__ import annotations

import base64
import hashlib
import hmac
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.conversation import SCRAM_SHA_256, SCRAM_SHA_512
from magnetar.core.security.scram import (
    HASHES,
    Credential,
    ScramExchange,
    credential_of,
    salted,
    stand_in,
)

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def stored(mechanism: str = SCRAM_SHA_256, password: bytes = b"pencil") -> Credential:
    return credential_of(mechanism, salted(mechanism, password, SALT, 4096), SALT, 4096)


@cache
def stored_once() -> Credential:
    return stored()


def test_the_example_of_rfc_7677() -> None:
    exchange = ScramExchange(SCRAM_SHA_256, NONCE)
    assert exchange.first(FIRST) == "user"
    assert exchange.challenge(stored()) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange.final(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    with pytest.raises(Unauthenticated):
        exchange.final(final)


def final_of(
    mechanism: str, password: bytes, first: bytes, challenge: bytes, bound: bytes = b"n,,"
) -> bytes:
    """What a client says at last."""
    fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
    name = HASHES[mechanism]
    salt = base64.b64decode(fields["s"])
    secret = salted(mechanism, password, salt, int(fields["i"]))
    client_key = hmac.digest(secret, b"Client Key", name)
    bare = f"c={base64.b64encode(bound).decode()},r={fields['r']}"
    message = b",".join((first.split(b",", 2)[2], challenge, bare.encode()))
    key = hashlib.new(name, client_key).digest()
    signature = hmac.digest(key, message, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return bare.encode() + b",p=" + base64.b64encode(proof)


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("bound", [b"n,,", b"y,,"])
def test_a_password_is_right_or_wrong(mechanism: str, bound: bytes) -> None:
    for password, right in ((b"pencil", True), (b"pen", False)):
        exchange = ScramExchange(mechanism, "server")
        first = bound + b"n=a=2Cb=3D,r=client"
        assert exchange.first(first) == "a,b="
        challenge = exchange.challenge(stored(mechanism))
        final = final_of(mechanism, password, first, challenge, bound)
        if right:
            assert exchange.final(final).startswith(b"v=")
        else:
            with pytest.raises(Unauthenticated, match="name or the password"):
                exchange.final(final)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=eve,n=user,r=abc",
        b"n,,n=us=2Xer,r=abc",
        b"n,,m=must,n=user,r=abc",
        b"n,,n=user,r=",
        b"n,,n=,r=abc",
        b"n,,n=user,r=a b",
        b"\xff,,n=user,r=abc",
        b"n,,n=" + b"u" * 5000 + b",r=abc",
    ],
)
def test_what_is_no_first_message(first: bytes) -> None:
    with pytest.raises(Unauthenticated):
        ScramExchange(SCRAM_SHA_256, NONCE).first(first)


def test_a_last_message_belongs_to_its_exchange() -> None:
    first = b"n,,n=user,r=client"
    heard = ScramExchange(SCRAM_SHA_512, "one")
    heard.first(first)
    final = final_of(SCRAM_SHA_512, b"pencil", first, heard.challenge(stored(SCRAM_SHA_512)))
    for nonce, said in (("two", final), ("one", final.replace(b"c=biws", b"c=eSws"))):
        exchange = ScramExchange(SCRAM_SHA_512, nonce)
        exchange.first(first)
        exchange.challenge(stored(SCRAM_SHA_512))
        with pytest.raises(Unauthenticated):
            exchange.final(said)


def test_an_unknown_name_has_always_the_same_salt() -> None:
    one = stand_in(SCRAM_SHA_256, "eve", b"secret")
    assert one == stand_in(SCRAM_SHA_256, "eve", b"secret")
    assert one.salt != stand_in(SCRAM_SHA_256, "ali", b"secret").salt
    assert one.salt != stand_in(SCRAM_SHA_256, "eve", b"other").salt
    assert (len(one.salt), len(one.stored_key), one.iterations) == (25, 32, 4096)


@given(st.binary(max_size=200), st.text(max_size=100))
def test_any_bytes_are_refused_or_read(first: bytes, text: str) -> None:
    for said in (first, f"n,,n={text},r={text}".encode(), b"y,,n=a,r=" + first):
        exchange = ScramExchange(SCRAM_SHA_256, NONCE)
        with suppress(Unauthenticated):
            assert exchange.first(said)
            exchange.challenge(stored_once())
        with pytest.raises(Unauthenticated):
            exchange.final(said)
        with pytest.raises(Unauthenticated):
            exchange.final(b"c=biws,r=" + first + b",p=" + base64.b64encode(first))
