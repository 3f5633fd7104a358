"""Authorities and certificates for tests, and handshakes with them in memory."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
EXPIRES = datetime.datetime(2035, 1, 1, tzinfo=datetime.UTC)


def name_of(*pairs: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in pairs])


class TestAuthority:
    """Signs certificates, as files of a folder."""

    __test__ = False

    def __init__(self, folder: Path, name: str, *, signs: bool = True) -> None:
        """Without `signs` it vouches for itself only."""
        self._folder = folder
        self._name = name_of((NameOID.COMMON_NAME, name))
        self._key = ec.generate_private_key(ec.SECP256R1())
        extension = x509.BasicConstraints(ca=signs, path_length=None)
        self.certificate = self.signed(self._name, self._key, extension)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        self.der = self.certificate.public_bytes(serialization.Encoding.DER)

    def signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey | None = None,
        *extensions: x509.ExtensionType,
    ) -> x509.Certificate:
        key = key or ec.generate_private_key(ec.SECP256R1())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.datetime.now(datetime.UTC) - DAY)
            .not_valid_after(EXPIRES)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def pair(self, subject: x509.Name) -> Path:
        """A file with a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._written(self.signed(subject, key), key)

    def own(self) -> Path:
        """The same of the authority itself."""
        return self._written(self.certificate, self._key)

    def _written(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Path:
        file = self._folder / f"{len(list(self._folder.iterdir()))}.pem"
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return file


def asking(server: Path, *authorities: TestAuthority) -> ssl.SSLContext:
    """The context of a server that asks for certificates of these authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    context.verify_mode = ssl.CERT_OPTIONAL
    for each in authorities:
        context.load_verify_locations(each.file)
    return context


def client_context(client: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None:
        context.load_cert_chain(client)
    return context


def shaken(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends of a connection after the handshake."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, session=session)
    waiting = [theirs, ours]
    while waiting:
        each = waiting.pop(0)
        try:
            each.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(each)
    ours.write(b"x")
    assert theirs.read(1) == b"x"  # and its session, with TLS 1.3
    return ours, theirs
