"""An authority of one's own, in a folder: it signs certificates for servers and for clients.

    ca.pem ca.key          the authority; whoever has its key can be anybody
    NAME.pem NAME.key      what it has signed

For teams that have no such thing yet. Keys are of the curve P-256, which every client knows. A
server's certificate cannot be used by a client, nor the other way (`ExtendedKeyUsage`).

Invariants: files are written whole and only for their owner; the authority is never overwritten.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from magnetar.operator_error import OperatorError
from magnetar.security.sources import owner_only

AUTHORITY: Final = "ca"
AUTHORITY_DAYS: Final = 3650
DAYS: Final = 365
"""How long certificates for servers and clients are valid."""
EARLIER: Final = datetime.timedelta(minutes=5)
"""They are valid a little before they are made: clocks differ."""
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9*_.-]+")
COMMON_NAME_LETTERS_MAX: Final = 64
"""RFC 5280, `ub-common-name`."""


class LocalAuthority:
    """See the module's docstring."""

    def __init__(
        self, folder: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> None:
        self._folder = folder
        self._certificate = certificate
        self._key = key

    def issue_server(self, name: str, hosts: Sequence[str], days: int = DAYS) -> x509.Certificate:
        """Write a certificate for a server with these host names and addresses."""
        names = x509.SubjectAlternativeName([_host(each) for each in hosts])
        return self._issue(name, ExtendedKeyUsageOID.SERVER_AUTH, days, names)

    def issue_client(self, name: str, days: int = DAYS) -> x509.Certificate:
        """Write a certificate that proves a role."""
        return self._issue(name, ExtendedKeyUsageOID.CLIENT_AUTH, days)

    def _issue(
        self,
        name: str,
        usage: x509.ObjectIdentifier,
        days: int,
        *more: x509.ExtensionType,
    ) -> x509.Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name), self._certificate.subject, key, days)
        for extension, critical in (
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.ExtendedKeyUsage([usage]), False),
            (_identifier_of(self._key), False),
            *((each, False) for each in more),
        ):
            builder = builder.add_extension(extension, critical)
        made = builder.sign(self._key, hashes.SHA256())
        _write(self._folder, name, made, key)
        return made


def make_authority(folder: Path, name: str) -> LocalAuthority:
    """A new authority, written to the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        _builder(subject, subject, key, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder, AUTHORITY, certificate, key)
    return LocalAuthority(folder, certificate, key)


def open_authority(folder: Path) -> LocalAuthority:
    """That of a folder; raises `OperatorError`."""
    where = folder / AUTHORITY
    try:
        certificate = x509.load_pem_x509_certificate(where.with_suffix(".pem").read_bytes())
        key = serialization.load_pem_private_key(where.with_suffix(".key").read_bytes(), None)
    except OSError as error:
        raise OperatorError(
            f"{folder} has no authority: {error.strerror}: {error.filename}"
        ) from None
    except (ValueError, TypeError):
        raise OperatorError(
            f"{where}.pem and {where}.key are no certificate with its key"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise OperatorError(f"{where}.key is not of the kind that `magnetar config init` makes")
    return LocalAuthority(folder, certificate, key)


def check_hosts(hosts: Sequence[str]) -> None:
    """Raise `OperatorError` unless all can be in a certificate."""
    for each in hosts:
        _host(each)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _identifier_of(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _subject(name: str) -> x509.Name:
    if not 0 < len(name) <= COMMON_NAME_LETTERS_MAX:
        raise OperatorError(f"a name in a certificate has 1 to {COMMON_NAME_LETTERS_MAX} letters")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if _HOST_NAME.fullmatch(name) is None:
        raise OperatorError(f"--host: {host!r} is neither a host name nor an address")
    return x509.DNSName(name)


def _write(
    folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    try:
        owner_only(
            folder / f"{name}.key",
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )
        owner_only(folder / f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM))
    except OSError as error:
        raise OperatorError(f"cannot write to {folder}: {error.strerror}") from None
