"""Identities from certificates, by handshakes of real TLS in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.security.certificates import proof
from magnetar.core.security.certificates.mapping_rules import MappingRules
from magnetar.core.security.certificates.proof import SUBJECT_MAX, ClientCertificates
from magnetar.core.security.certificates.tests.authority import (
    EXPIRES,
    TestAuthority,
    asking,
    client_context,
    name_of,
    shaken,
)
from magnetar.core.security.conversation import CERTIFICATE, AuthPeer
from magnetar.core.security.identity import Identity
from magnetar.core.testing.clock import FixedClock

CN = NameOID.COMMON_NAME
ALI = name_of((NameOID.ORGANIZATION_NAME, "Acme"), (CN, "ali"))
SERVER = name_of((CN, "localhost"))


@pytest.fixture
def ours(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path, "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path, "theirs")


def trusting(*authorities: TestAuthority, clock: FixedClock | None = None) -> ClientCertificates:
    made = ClientCertificates(proof.common_name, clock or FixedClock())
    made.trust([each.der for each in authorities])
    return made


async def test_who_is_proven(ours: TestAuthority) -> None:
    server, client = asking(ours.pair(SERVER), ours), client_context(ours.pair(ALI))
    conversation = trusting(ours).begin(AuthPeer("", shaken(server, client)[0]))
    assert await conversation.respond(b"whatever") == b""
    found = conversation.identity
    assert found is not None
    assert (found.name, found.method, found.expires_at) == ("ali", CERTIFICATE, EXPIRES.timestamp())


def test_who_shows_nothing(ours: TestAuthority) -> None:
    certificates, server = trusting(ours), asking(ours.pair(SERVER), ours)
    before = server.wrap_bio(*_pipes(), server_side=True)
    for tls in (None, before, shaken(server, client_context())[0]):
        with pytest.raises(Unauthenticated, match="shows no certificate"):
            certificates.prove(AuthPeer("", tls))


def _pipes() -> tuple[proof.ssl.MemoryBIO, proof.ssl.MemoryBIO]:
    return proof.ssl.MemoryBIO(), proof.ssl.MemoryBIO()


@pytest.mark.parametrize(
    "subject",
    [
        name_of((NameOID.ORGANIZATION_NAME, "Acme")),
        name_of((CN, " padded")),
        name_of((CN, "line\nbreak")),
        name_of((CN, "nul\0byte")),
        name_of((CN, "bidi\u202e")),
    ],
)
def test_a_name_that_is_none(ours: TestAuthority, subject: x509.Name) -> None:
    server, client = asking(ours.pair(SERVER), ours), client_context(ours.pair(subject))
    with pytest.raises(Unauthenticated, match="has no name"):
        trusting(ours).prove(AuthPeer("", shaken(server, client)[0]))


def test_an_authority_that_goes(ours: TestAuthority, theirs: TestAuthority) -> None:
    """Its certificates prove nothing any more; those of another still do."""
    both, certificates = asking(ours.pair(SERVER), ours, theirs), trusting(ours, theirs)
    mine = AuthPeer("", shaken(both, client_context(ours.pair(ALI)))[0])
    others = AuthPeer("", shaken(both, client_context(theirs.pair(ALI)))[0])
    found = [certificates.prove(peer) for peer in (mine, others)]
    certificates.trust([theirs.der])
    assert [certificates.is_gone(each) for each in found] == [True, False]
    with pytest.raises(Unauthenticated, match="trusted no longer"):
        certificates.prove(mine)
    assert certificates.prove(others).name == "ali"
    assert not certificates.is_gone(Identity("ali", method="token"))


def test_a_resumed_session_stands_on_all_authorities(
    ours: TestAuthority, theirs: TestAuthority
) -> None:
    """OpenSSL does not say which has verified it."""
    server = asking(ours.pair(SERVER), ours, theirs)
    client, certificates = client_context(ours.pair(ALI)), trusting(ours, theirs)
    session = shaken(server, client)[1].session
    again = shaken(server, client, session)[0]
    assert again.session_reused
    found = certificates.prove(AuthPeer("", again))
    assert (found.name, len(found.authorities)) == ("ali", 2)
    other = asking(ours.pair(SERVER), ours)
    assert not shaken(other, client, session)[0].session_reused


def test_a_certificate_that_is_trusted_as_it_is(ours: TestAuthority, tmp_path: Path) -> None:
    """No authority has signed it; it is known by itself, and so it may go."""
    ali = TestAuthority(tmp_path, "ali", signs=False)
    server, client = asking(ours.pair(SERVER), ali), client_context(ali.own())
    certificates, (tls, theirs) = trusting(ali), shaken(server, client)
    first = certificates.prove(AuthPeer("", tls))
    again = certificates.prove(AuthPeer("", shaken(server, client, theirs.session)[0]))
    assert first.name == again.name == "ali"
    certificates.trust([])
    assert certificates.is_gone(first)
    assert certificates.is_gone(again)
    with pytest.raises(Unauthenticated, match="trusted no longer"):
        certificates.prove(AuthPeer("", shaken(server, client, theirs.session)[0]))


def test_a_certificate_that_has_expired_since(ours: TestAuthority) -> None:
    server, client = asking(ours.pair(SERVER), ours), client_context(ours.pair(ALI))
    tls = shaken(server, client)[0]
    late = FixedClock()
    late.forward(EXPIRES.timestamp() - late.wall_ms() / 1000)
    with pytest.raises(Unauthenticated, match="expired"):
        trusting(ours, clock=late).prove(AuthPeer("", tls))


def test_other_names(ours: TestAuthority) -> None:
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("device-1.example.org"),
            x509.RFC822Name("ali@example.org"),
            x509.UniformResourceIdentifier("spiffe://example.org/ali"),
            x509.DNSName("second.example.org"),
        ]
    )
    certificate = ours.signed(ALI, None, names)
    for kind, expected in (
        (x509.DNSName, "device-1.example.org"),
        (x509.RFC822Name, "ali@example.org"),
        (x509.UniformResourceIdentifier, "spiffe://example.org/ali"),
    ):
        assert proof.alternative_name(kind)(certificate) == expected
        assert proof.alternative_name(kind)(ours.signed(ALI)) is None
    by_rule = proof.subject_by(MappingRules("RULE:CN=(.*),O=Acme/$1/U"))
    assert by_rule(certificate) == "ALI"
    assert by_rule(ours.signed(SERVER)) is None


def test_rules_are_not_asked_about_long_subjects(ours: TestAuthority) -> None:
    """A pattern may take for ever over one that is made for it."""
    units, rest = [(NameOID.ORGANIZATIONAL_UNIT_NAME, "u" * 60)] * 15, (CN, "a" * 37)
    longest = name_of(*units, rest)
    server = asking(ours.pair(SERVER), ours)

    def prove(subject: x509.Name, rules: str) -> str:
        made = ClientCertificates(proof.subject_by(MappingRules(rules)), FixedClock())
        made.trust([ours.der])
        tls = shaken(server, client_context(ours.pair(subject)))[0]
        return made.prove(AuthPeer("", tls)).name

    assert len(prove(longest, "DEFAULT")) == SUBJECT_MAX
    assert prove(longest, "RULE:CN=(a*),.*/$1/U") == "A" * 37
    with pytest.raises(Unauthenticated, match="its subject has more than 1000 characters"):
        prove(name_of(*units, (CN, "a" * 38)), "DEFAULT")
    evil = name_of(*[(NameOID.ORGANIZATIONAL_UNIT_NAME, "a")] * 300, (CN, "b"))
    with pytest.raises(Unauthenticated, match="its subject has more"):
        prove(evil, r"RULE:CN=b,((OU=a,?)+)+X/$1/")
