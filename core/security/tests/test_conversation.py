"""What is known of a client besides what it says."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate
from cryptography.x509.oid import NameOID

from magnetar.core.security.certificates.tests.authority import (
    TestAuthority,
    asking,
    client_context,
    name_of,
    shaken,
)
from magnetar.core.security.conversation import AuthPeer

ALI = name_of((NameOID.COMMON_NAME, "ali"))


def test_a_certificate_that_was_verified(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path, "ours")
    pair = authority.pair(ALI)
    server = asking(authority.pair(ALI), authority)
    der = load_pem_x509_certificate(pair.read_bytes()).public_bytes(Encoding.DER)
    assert AuthPeer("", shaken(server, client_context(pair))[0]).certificate == der
    assert AuthPeer("", shaken(server, client_context())[0]).certificate is None
    assert AuthPeer("").certificate is None


def test_none_before_the_handshake_is_over(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path, "ours")
    server = asking(authority.pair(ALI), authority)
    begun = server.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
    assert AuthPeer("", begun).certificate is None


def test_a_certificate_of_somebody_else(tmp_path: Path) -> None:
    ours, theirs = TestAuthority(tmp_path, "ours"), TestAuthority(tmp_path, "theirs")
    with pytest.raises(ssl.SSLError, match="certificate"):
        shaken(asking(ours.pair(ALI), ours), client_context(theirs.pair(ALI)))
