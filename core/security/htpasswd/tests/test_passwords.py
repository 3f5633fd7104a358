"""Names and passwords: right, wrong, unknown, remembered, changed."""

from __future__ import annotations

import jwt
import pytest

from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.htpasswd import password_hashes
from magnetar.core.security.htpasswd.password_hashes import new_hash
from magnetar.core.security.htpasswd.passwords import (
    BasicConversation,
    PasswordConversation,
    Passwords,
    people_in,
)
from magnetar.core.security.token_keys import secret_key
from magnetar.core.security.tokens import TokenClaims, TokenVerifier

ALI = new_hash("sesame")


def people(**hashes: str) -> Passwords:
    made = Passwords(SystemClock())
    made.hashes = hashes or {"ali": ALI}
    return made


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hashes that passwords were compared with."""
    found: list[str] = []
    real = password_hashes.fits

    def fits(password: bytes, stored: str) -> bool:
        found.append(stored)
        return real(password, stored)

    monkeypatch.setattr(password_hashes, "fits", fits)
    return found


async def test_what_was_right_is_remembered(looks: list[str]) -> None:
    made = people()
    for _ in range(3):
        found = await made.prove("ali", b"sesame")
        assert (found.name, found.method) == ("ali", "password")
    assert looks == [ALI]


async def test_what_was_wrong_is_not(looks: list[str]) -> None:
    made = people()
    for _ in range(2):
        with pytest.raises(Unauthenticated, match="the name or the password is wrong"):
            await made.prove("ali", b"open")
    assert looks == [ALI, ALI]


async def test_an_unknown_name_takes_as_long_as_a_wrong_password(looks: list[str]) -> None:
    with pytest.raises(Unauthenticated, match="the name or the password is wrong"):
        await people().prove("eve", b"sesame")
    assert looks == [ALI], "it is ali's password, and still refused"


async def test_another_password_counts_at_once(looks: list[str]) -> None:
    made = people()
    await made.prove("ali", b"sesame")
    made.hashes = {"ali": new_hash("other")}
    with pytest.raises(Unauthenticated):
        await made.prove("ali", b"sesame")
    made.hashes = {}
    with pytest.raises(Unauthenticated):
        await made.prove("ali", b"other")


async def said(conversation: PasswordConversation, message: bytes) -> str:
    await conversation.respond(message)
    assert conversation.identity is not None
    return conversation.identity.name


async def test_the_messages() -> None:
    passwords = people()
    for message in (b"\0ali\0sesame", b"ali\0ali\0sesame"):
        assert await said(PasswordConversation(passwords, None), message) == "ali"
    assert await said(BasicConversation(passwords, None), b"ali:sesame") == "ali"
    for message in (b"", b"\0", b"ali", b"\0\0sesame", b"root\0ali\0sesame", b"\0\xff\0sesame",
                    b"\0ali\0sesame\0", b"\0a\0" + b"x" * 70_000):  # fmt: skip
        with pytest.raises(Unauthenticated):
            await PasswordConversation(passwords, None).respond(message)
    for message in (b"", b"ali", b":sesame", b"\xff:x"):
        with pytest.raises(Unauthenticated):
            await BasicConversation(passwords, None).respond(message)


async def test_a_token_for_a_password() -> None:
    tokens = TokenVerifier(TokenClaims())
    tokens.keys = [secret_key(b"s" * 32)]
    token = jwt.encode({"sub": "device-7"}, b"s" * 32).encode()
    for name in (b"x", b""):
        for password in (b"token:" + token, token):
            said_now = b"\0" + name + b"\0" + password
            assert await said(PasswordConversation(None, tokens), said_now) == "device-7"
    with pytest.raises(Unauthenticated, match="is no token"):
        await PasswordConversation(None, tokens).respond(b"\0x\0sesame")
    with pytest.raises(Unauthenticated):
        await PasswordConversation(people(), None).respond(b"\0ali\0token:" + token)


def test_an_htpasswd_file() -> None:
    found, wrong = people_in(f"# people\n\nali:{ALI}\nbob:{{SHA}}x:comment\nplain:secret\nnobody\n")
    assert found == {"ali": ALI, "bob": "{SHA}x"}
    assert wrong == [
        "line 5: the hash of plain is not bcrypt, apr1 or SHA",
        "line 6 is no name with a hash",
    ]
