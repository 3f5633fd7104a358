"""A certificate that TLS has verified, as the proof of an identity (`CERTIFICATE`).

The client says nothing more: it has signed the handshake with the certificate's key. Its name is
the common name of the subject, the whole subject (`mapping_rules.py`), or the first alternative
name of a kind.

The proof is valid as long as the certificate, and as long as we trust the authority at the end of
its chain: the sessions of others are expired (`live.py`). OpenSSL tells that chain after a whole
handshake. After a resumed one it does not, and then the proof stands on every authority that was
trusted in the context: only that context resumes its sessions (`core/link/front.py`).

Invariants: no identity comes from a certificate that was not verified, nor after its time; names
are printable and not empty, else the login fails. No text of more than `SUBJECT_MAX` characters
meets the patterns of rules: Python's take seconds on the loop, or for ever, for texts made for it.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from cryptography import x509

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.certificates import distinguished_name
from magnetar.core.security.certificates.mapping_rules import MappingRules
from magnetar.core.security.conversation import CERTIFICATE, AuthPeer
from magnetar.core.security.identity import Identity, is_name

NameOf = Callable[[x509.Certificate], str | None]
"""The name in a certificate; raises ValueError."""
SUBJECT_MAX: Final = 1_000
"""Characters of a subject that rules are asked about. X.520 has 64 for each of its parts."""
DER: Final = 2
"""`_ssl.ENCODING_DER`."""


class ClientCertificates:
    """See the module's docstring."""

    def __init__(self, name_of: NameOf, clock: Clock) -> None:
        self._name_of = name_of
        self._clock = clock
        self._trusted: frozenset[bytes] = frozenset()
        """Digests of the authorities' certificates."""

    def trust(self, authorities: Iterable[bytes]) -> None:
        """Trust these authorities (DER), and no others from now on."""
        self._trusted = frozenset(map(_digest, authorities))

    def is_gone(self, who: Identity) -> bool:
        """Whether somebody's certificate stands on an authority that is trusted no longer."""
        return who.method == CERTIFICATE and not who.authorities <= self._trusted

    def prove(self, peer: AuthPeer) -> Identity:
        """The identity that a verified certificate proves; raises `Unauthenticated`."""
        der, tls = peer.certificate, peer.tls
        if tls is None or der is None:
            raise Unauthenticated("the client shows no certificate")
        try:
            certificate = x509.load_der_x509_certificate(der)
            name = self._name_of(certificate)
            expires_at = certificate.not_valid_after_utc.timestamp()
        except (ValueError, x509.DuplicateExtension) as error:
            raise Unauthenticated(f"the certificate cannot be read: {error}") from error
        if name is None or not is_name(name):
            raise Unauthenticated("the certificate has no name that could be used here")
        if expires_at <= self._clock.wall_ms() / 1000:
            raise Unauthenticated("the certificate has expired")  # and its session was resumed
        made = Identity(name, (name,), CERTIFICATE, expires_at, self._authorities_of(tls, der))
        if not made.authorities or self.is_gone(made):
            raise Unauthenticated("the certificate's authority is trusted no longer")
        return made

    def _authorities_of(self, tls: ssl.SSLObject, der: bytes) -> frozenset[bytes]:
        """What the proof stands on. Somebody's own certificate may be trusted as it is, too."""
        found = _end_of_chain(tls)
        if not found and _digest(der) in self._trusted:
            found = frozenset((_digest(der),))
        return found or frozenset(map(_digest, tls.context.get_ca_certs(binary_form=True)))

    def begin(self, peer: AuthPeer) -> CertificateConversation:
        """The mechanism."""
        return CertificateConversation(self, peer)


class CertificateConversation:
    """The client says nothing, or whatever it likes."""

    refusal = ""
    __slots__ = ("_certificates", "_peer", "identity")

    def __init__(self, certificates: ClientCertificates, peer: AuthPeer) -> None:
        self.identity: Identity | None = None
        self._certificates = certificates
        self._peer = peer

    async def respond(self, said: bytes) -> bytes:
        del said
        self.identity = self._certificates.prove(self._peer)
        return b""


def _digest(der: bytes) -> bytes:
    return hashlib.sha256(der).digest()


def _end_of_chain(tls: ssl.SSLObject) -> frozenset[bytes]:
    """The authority at the end of the verified chain; empty if that is not known.

    Python has this without an underscore from 3.13 (`SSLObject.get_verified_chain`).
    """
    inner: Any = tls._sslobj  # type: ignore[attr-defined]
    chain = inner.get_verified_chain()
    return frozenset((_digest(chain[-1].public_bytes(DER)),)) if chain else frozenset()


# -- names ------------------------------------------------------------------------------------


def common_name(certificate: x509.Certificate) -> str | None:
    """As Pulsar's `AuthenticationProviderTls`."""
    return distinguished_name.common_name(_subject(certificate)) or None


def subject_by(rules: MappingRules) -> NameOf:
    """As Kafka's `DefaultKafkaPrincipalBuilder`."""

    def name_of(certificate: x509.Certificate) -> str | None:
        subject = distinguished_name.rfc2253(_subject(certificate))
        if len(subject) > SUBJECT_MAX:
            raise ValueError(f"its subject has more than {SUBJECT_MAX} characters")
        return rules.name(subject)

    return name_of


def alternative_name(kind: type[x509.GeneralName]) -> NameOf:
    """The first subject alternative name of a kind."""

    def name_of(certificate: x509.Certificate) -> str | None:
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            return None
        found: Collection[str] = [each.value for each in names.value if isinstance(each, kind)]
        return next(iter(found), None)

    return name_of


def _subject(certificate: x509.Certificate) -> distinguished_name.DistinguishedName:
    return distinguished_name.parsed(certificate.subject.public_bytes())
