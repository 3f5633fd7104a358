"""The `Access` of a server: which ways to authenticate its settings ask for.

The libraries for tokens and passwords are imported only by servers that use them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.ports.metadata_store import MetadataStore
from magnetar.core.security.access import Access
from magnetar.core.security.audit import AuditTrail
from magnetar.core.security.conversation import (
    BASIC,
    CERTIFICATE,
    OAUTHBEARER,
    PLAIN,
    TOKEN,
    Mechanism,
)
from magnetar.core.security.failures import FailedLogins
from magnetar.core.security.identity import Identity
from magnetar.core.security.judge import Judge
from magnetar.core.security.live import LiveSessions
from magnetar.security.audit_file import AuditFile
from magnetar.security.remote import RemoteDocument, check_way, is_remote
from magnetar.security.sources import LOOK_SECONDS, SecretSource
from magnetar.settings.mqtt import Mqtt
from magnetar.settings.security import CertificateName, Security
from magnetar.wire.mqtt.rights.acl_file import AclFile

if TYPE_CHECKING:
    from magnetar.core.security.certificates.proof import ClientCertificates
    from magnetar.core.security.htpasswd.passwords import Passwords
    from magnetar.core.security.scram_store import ScramWatch
    from magnetar.core.security.token_keys import TokenKey
    from magnetar.core.security.tokens import TokenVerifier


def _nobody(_authorities: Collection[bytes]) -> None:
    """Certificates prove nothing here."""


class GuardedAccess(Struct, frozen=True):
    """An access, and what keeps its keys and passwords up to date."""

    access: Access
    sources: list[SecretSource] = []
    remote: Sequence[RemoteDocument] = ()
    trust: Callable[[Collection[bytes]], None] = _nobody
    """Told which authorities verify client certificates (DER), whenever these change."""
    audit_file: AuditFile | None = None
    watches: list[ScramWatch] = []
    tokens: TokenVerifier | None = None
    """What verifies tokens, if there is a key for them."""

    def open(self, setting: str, where: str, take: Callable[[bytes], None]) -> None:
        """Have another setting of `security` read, now and when it changes."""
        source = SecretSource(f"security.{setting}", where, take)
        source.open()
        self.sources.append(source)

    def with_users(self, settings: Security, metadata: MetadataStore) -> Access:
        """The access, also for users whose credentials are in the metadata store."""
        if settings.scram:
            from magnetar.core.security.scram_store import ScramWatch, scram_mechanisms

            self.watches.append(ScramWatch(metadata, self.access.live))
            self.access.mechanisms.update(scram_mechanisms(metadata))
        return self.access

    def open_acl_file(self, settings: Mqtt) -> AclFile | None:
        """The rules for MQTT topics, from now on those of the file; raises `OperatorError`."""
        if not settings.acl_file:
            return None
        found = AclFile()

        def take(raw: bytes) -> None:
            found.take(raw)
            self.access.rights_changed()

        source = SecretSource("mqtt.acl_file", settings.acl_file, take)
        source.open()
        self.sources.append(source)
        return found

    async def run(self) -> None:
        """Read again what changes, until cancelled."""
        async with trio.open_nursery() as nursery:
            for each in self.remote:
                nursery.start_soon(each.run)
            if self.access.audit is not None:
                nursery.start_soon(self.access.audit.run)
            for watch in self.watches:
                nursery.start_soon(watch.run)
            while True:
                await trio.sleep(LOOK_SECONDS if self.sources else float("inf"))
                for source in self.sources:
                    source.look()


def open_access(settings: Security, clock: Clock) -> GuardedAccess:
    """The access that settings ask for; raises `OperatorError` for keys that cannot be used."""
    file = _audit_file(settings, clock)
    audit = None if file is None else AuditTrail(clock, file.write)
    if not settings.authenticates:
        return GuardedAccess(Access(audit=audit), audit_file=file)
    made = _Opening(settings, clock)
    tokens, passwords = made.tokens(), made.passwords()
    mechanisms: dict[str, Mechanism] = {}
    if tokens is not None:
        from magnetar.core.security.tokens import BearerConversation, TokenConversation

        mechanisms[TOKEN] = lambda _peer: TokenConversation(tokens)
        mechanisms[OAUTHBEARER] = lambda _peer: BearerConversation(tokens)
    if tokens is not None or passwords is not None:
        from magnetar.core.security.htpasswd.passwords import (
            BasicConversation,
            PasswordConversation,
        )

        mechanisms[PLAIN] = lambda _peer: PasswordConversation(passwords, tokens)
        mechanisms[BASIC] = lambda _peer: BasicConversation(passwords, tokens)
    certificates = made.certificates()
    trust: Callable[[Collection[bytes]], None] = _nobody
    if certificates is not None:
        mechanisms[CERTIFICATE], trust = certificates.begin, certificates.trust
    judge = None
    if settings.authorization:
        judge = Judge(settings.superusers, settings.allow_everyone_if_no_acl_found)
    failures = FailedLogins(clock, audit)
    access = Access(mechanisms, judge, _anonymous(settings), failures, made.live, audit=audit)
    return GuardedAccess(access, made.sources, made.remote, trust, file, tokens=tokens)


def _audit_file(settings: Security, clock: Clock) -> AuditFile | None:
    if not settings.audit_log:
        return None
    size = settings.audit_log_mb * 1024 * 1024
    return AuditFile(Path(settings.audit_log), size, settings.audit_log_files, clock)


def _anonymous(settings: Security) -> Identity | None:
    return Identity(settings.anonymous_role) if settings.anonymous_role else None


class _Opening:
    """Gathers what is read from files and URLs."""

    def __init__(self, settings: Security, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.sources: list[SecretSource] = []
        self.remote: list[RemoteDocument] = []
        self.live = LiveSessions()

    def _open(self, setting: str, where: str, take: Callable[[bytes], None]) -> None:
        source = SecretSource(f"security.{setting}", where, take)
        source.open()
        self.sources.append(source)

    def _want_keys(self) -> None:
        for each in self.remote:
            each.want()

    def tokens(self) -> TokenVerifier | None:
        """The verifier of tokens, if there is a key for them."""
        settings = self._settings
        if not (settings.token_secret_key or settings.token_public_key or settings.token_jwks):
            return None
        from magnetar.core.security import token_keys
        from magnetar.core.security.tokens import TokenClaims, TokenVerifier

        claims = TokenClaims(
            settings.token_auth_claim,
            settings.token_issuer,
            settings.token_audience,
            settings.token_audience_claim,
        )
        verifier = TokenVerifier(claims, self._want_keys)
        parts: dict[str, Sequence[TokenKey]] = {}

        def take(name: str, read: Callable[[bytes], Sequence[TokenKey]], raw: bytes) -> None:
            try:
                parts[name] = read(raw)
            except token_keys.UnusableKey as error:
                raise ValueError(str(error)) from None
            verifier.keys = [key for each in parts.values() for key in each]

        for name, read in (
            ("token_secret_key", lambda raw: [token_keys.secret_key(raw)]),
            ("token_public_key", lambda raw: [token_keys.public_key(raw)]),
            ("token_jwks", token_keys.jwks),
        ):
            where = getattr(settings, name)
            if where and is_remote(where):
                check_way(f"security.{name}", where)
                document = RemoteDocument(f"security.{name}", where, partial(take, name, read))
                self.remote.append(document)
            elif where:
                self._open(name, where, partial(take, name, read))
        return verifier

    def passwords(self) -> Passwords | None:
        if not self._settings.htpasswd:
            return None
        from magnetar.core.security.htpasswd.passwords import METHOD, Passwords, people_in

        passwords = Passwords(self._clock)

        def take(raw: bytes) -> None:
            found, wrong = people_in(raw.decode())
            if wrong:
                raise ValueError("; ".join(wrong[:3]))
            before, passwords.hashes = passwords.hashes, found
            changed = {name for name, stored in before.items() if found.get(name) != stored}
            self.live.gone(METHOD, changed)

        self._open("htpasswd", self._settings.htpasswd, take)
        return passwords

    def certificates(self) -> ClientCertificates | None:
        settings = self._settings
        if not settings.client_certificates:
            return None
        from cryptography import x509

        from magnetar.core.security.certificates import proof
        from magnetar.core.security.certificates.mapping_rules import MappingRules

        names: dict[CertificateName, proof.NameOf] = {
            "common_name": proof.common_name,
            "subject": proof.subject_by(MappingRules(settings.certificate_mapping_rules)),
            "dns": proof.alternative_name(x509.DNSName),
            "email": proof.alternative_name(x509.RFC822Name),
            "uri": proof.alternative_name(x509.UniformResourceIdentifier),
        }
        found = proof.ClientCertificates(names[settings.certificate_name], self._clock)
        self.live.is_gone = found.is_gone
        return found
