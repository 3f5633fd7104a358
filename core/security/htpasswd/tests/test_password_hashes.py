"""Hashes, against what Apache's and OpenSSL's tools have made."""

from __future__ import annotations

import pytest

from magnetar.core.security.htpasswd.password_hashes import fits, is_hash, new_hash

KNOWN = [
    ("hello world, longer than sixteen", "$apr1$abcdefgh$2ZgMbF5dY9TzjA3NnoMKo1"),
    ("password", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="),
]


@pytest.mark.parametrize(("password", "stored"), KNOWN)
def test_known_hashes(password: str, stored: str) -> None:
    assert is_hash(stored)
    assert fits(password.encode(), stored)
    assert not fits(password.encode() + b"x", stored)
    assert not fits(b"", stored)


def test_a_new_hash_is_bcrypt() -> None:
    stored = new_hash("gehäim")
    assert stored.startswith("$2b$10$")
    assert is_hash(stored)
    assert fits("gehäim".encode(), stored)
    assert fits("gehäim".encode(), "$2y$" + stored[4:]), "as Apache writes it"
    assert not fits(b"geheim", stored)


def test_passwords_that_bcrypt_would_cut() -> None:
    stored = new_hash("x" * 72)
    assert not fits(b"x" * 73, stored)
    assert not fits(b"x" * 72 + b"\0", stored)
    for password in ("", "x" * 73):
        with pytest.raises(ValueError, match="1 to 72 bytes"):
            new_hash(password)


@pytest.mark.parametrize("text", ["", "secret", "$1$abc$def", "$2b$10$short", "rqXexS6ZhobKA"])
def test_what_is_no_hash(text: str) -> None:
    assert not is_hash(text)
