"""Keys and certificates made for one run: pairs that seal messages, authorities for TLS."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


def rsa_pair() -> dict[str, str]:
    """A public and a private key as PEM, by the names that the Java scenes know them by."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return {"public": public.decode(), "private": private.decode()}


def rsa_files(folder: Path) -> tuple[str, str]:
    """The same as two files, as the Python client reads them."""
    paths = folder / "public.pem", folder / "private.pem"
    for path, text in zip(paths, rsa_pair().values(), strict=True):
        path.write_text(text)
    return str(paths[0]), str(paths[1])


class Authority:
    """Signs certificates; everything is a file in its folder."""

    def __init__(self, folder, name):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.certificate = str(self._write(f"{name}.pem", made))

    def issue(self, name, host="localhost", address="127.0.0.1", subject=None, until=DAY, unit=""):
        """Paths of a certificate for a host and of its key. Its subject has the common name `name`,
        if it has not another `subject`; it expires in a day, or some time that may have passed.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        named = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if unit:
            named.insert(0, x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
        subject = subject or x509.Name(named)
        hosts = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address(address))]
        made = self._sign(subject, key, x509.SubjectAlternativeName(hosts), until)
        path = self._folder / f"{name}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        path.chmod(0o600)
        return str(self._write(f"{name}.pem", made)), str(path)

    def _sign(self, subject, key, extension, until=DAY):
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * DAY)
            .not_valid_after(now + until)
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, name, certificate):
        path = self._folder / name
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


def keystore(pair, path, password):
    """A PKCS #12 file, as Java's programs read them, of a certificate and its key."""
    certificate = x509.load_pem_x509_certificate(Path(pair[0]).read_bytes())
    key = serialization.load_pem_private_key(Path(pair[1]).read_bytes(), None)
    sealed = serialization.BestAvailableEncryption(password.encode())
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, sealed))
    return str(path)
