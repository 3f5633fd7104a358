"""Hashes of passwords as `htpasswd` writes them. Pure.

    $2y$ $2b$ $2a$   bcrypt, which `magnetar user` writes
    $apr1$           Apache's variant of MD5-crypt, a thousand rounds (`apr_md5.c`)
    {SHA}            SHA-1 without a salt

Others are refused when the file is read: `crypt` knows eight letters, and plain text is no hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

import bcrypt

BCRYPT: Final = ("$2y$", "$2b$", "$2a$")
APR1: Final = "$apr1$"
SHA: Final = "{SHA}"
ROUNDS: Final = 10
"""Bcrypt's cost for new passwords: 2^10 rounds, some 50 ms. Apache's `htpasswd -B` takes 5."""
PASSWORD_BYTES_MAX: Final = 72
"""Bcrypt looks at no more; a longer password would be another's equal."""
_ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_hash(text: str) -> bool:
    """Whether it is a hash that can be checked here."""
    if text.startswith(BCRYPT):
        return len(text) == 60
    return text.startswith((APR1, SHA))


def new_hash(password: str) -> str:
    """A hash to store; raises ValueError for a password that bcrypt would cut."""
    raw = password.encode()
    if not 0 < len(raw) <= PASSWORD_BYTES_MAX:
        raise ValueError(f"a password has 1 to {PASSWORD_BYTES_MAX} bytes")
    return bcrypt.hashpw(raw, bcrypt.gensalt(ROUNDS)).decode()


def fits(password: bytes, stored: str) -> bool:
    """Whether a password has that hash. Blocks: bcrypt takes 50 ms or more."""
    if stored.startswith(BCRYPT):
        if not 0 < len(password) <= PASSWORD_BYTES_MAX or b"\0" in password:
            return False
        try:
            return bcrypt.checkpw(password, stored.encode())
        except ValueError:
            return False
    if stored.startswith(APR1):
        salt = stored.removeprefix(APR1).partition("$")[0]
        return hmac.compare_digest(_apr1(password, salt.encode()[:8]).encode(), stored.encode())
    digest = base64.b64encode(hashlib.sha1(password, usedforsecurity=False).digest())
    return hmac.compare_digest(SHA.encode() + digest, stored.encode())


def _apr1(password: bytes, salt: bytes) -> str:
    """`apr_md5_encode`."""
    inner = _md5(password + salt + password)
    begun = password + APR1.encode() + salt
    begun += (inner * (len(password) // 16 + 1))[: len(password)]
    length = len(password)
    while length:
        begun += b"\0" if length & 1 else password[:1]
        length >>= 1
    digest = _md5(begun)
    for turn in range(1000):
        mixed = password if turn & 1 else digest
        if turn % 3:
            mixed += salt
        if turn % 7:
            mixed += password
        mixed += digest if turn & 1 else password
        digest = _md5(mixed)
    return f"{APR1}{salt.decode('latin-1')}${_encoded(digest)}"


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _encoded(digest: bytes) -> str:
    """Six bits a letter, in the order of MD5-crypt."""
    places = [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)]
    found = [
        _letters(digest[high] << 16 | digest[middle] << 8 | digest[low], 4)
        for high, middle, low in places
    ]
    return "".join(found) + _letters(digest[11], 2)


def _letters(value: int, count: int) -> str:
    return "".join([_ALPHABET[value >> 6 * place & 63] for place in range(count)])
