"""An authority in a folder, and what it signs: OpenSSL and Python verify both."""

from __future__ import annotations

import ipaddress
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from magnetar.core.security.certificates.tests.authority import shaken
from magnetar.operator_error import OperatorError
from magnetar.security.authority import check_hosts, make_authority, open_authority


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "ca.pem")
    return context


def client_context(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    context.check_hostname = False  # the handshake below names no host
    return context


def test_both_sides_trust_each_other(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "Team")
    made = authority.issue_server("server", ["example.org", "::1", "b\u00fccher.example"])
    open_authority(tmp_path).issue_client("ali")
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["example.org", "xn--bcher-kva.example"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("::1")]
    ours, _ = shaken(server_context(tmp_path), client_context(tmp_path, "ali"))
    certificate = ours.getpeercert()
    assert certificate is not None
    assert certificate["subject"] == ((("commonName", "ali"),),)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_server_is_no_client(tmp_path: Path) -> None:
    make_authority(tmp_path, "Team").issue_server("server", ["localhost"])
    with pytest.raises(ssl.SSLError, match="certificate"):
        shaken(server_context(tmp_path), client_context(tmp_path, "server"))


@pytest.mark.parametrize("host", ["", "a..b", "x" * 64, "\ud800", 'a"b', "a b"])
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(OperatorError, match="--host"):
        check_hosts(["localhost", host])


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_what_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(OperatorError, match="letters"):
        make_authority(tmp_path, "Team").issue_client(name)


def test_no_authority(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"has no authority: .*ca\.pem"):
        open_authority(tmp_path)
    make_authority(tmp_path, "Team")
    key = tmp_path / "ca.key"
    key.write_bytes(
        ed25519.Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    with pytest.raises(OperatorError, match="not of the kind"):
        open_authority(tmp_path)
    key.write_text("hello")
    with pytest.raises(OperatorError, match="no certificate with its key"):
        open_authority(tmp_path)
