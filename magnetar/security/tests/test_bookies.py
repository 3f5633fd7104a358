"""What the settings make of authentication at bookies."""

import json
import time
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from msgspec import structs

from magnetar.bookie.rpc.credentials import SASL, TICKET, TOKEN, PasswordCredentials
from magnetar.bookie.rpc.digest_md5 import secret_of
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.kernel.errors import Unauthenticated
from magnetar.core.ledger.read import tickets
from magnetar.core.ledger.read.tickets import TicketOffice
from magnetar.operator_error import OperatorError
from magnetar.security.access import open_access
from magnetar.security.bookies import (
    digests_in,
    open_bookie_access,
    open_bookie_security,
    open_tickets,
    own_tickets,
)
from magnetar.settings.security import Security

SECRET = b"s" * 32
KEY = b"k" * 32
CLOCK = SystemClock()


def signed(subject, expires_at=None, secret=SECRET):
    claims = {"sub": subject} | ({"exp": expires_at} if expires_at else {})
    return jwt.encode(claims, secret, "HS256").encode()


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return str(path)


def opened(settings, office=None, **more):
    guarded = open_access(settings, CLOCK)
    return open_bookie_access(settings, guarded, CLOCK, office, **more), guarded


def test_without_settings_nobody_is_asked():
    assert opened(Security())[0] is None
    assert opened(Security(bookie_roles=("a",)))[0] is None


def test_a_token_of_a_role_that_may(secret):
    access, _ = opened(
        Security(token_secret_key=secret, superusers=("root",), bookie_roles=("writer",))
    )
    assert set(access.mechanisms) == {TOKEN}
    for name in ("root", "writer"):
        exchange = access.mechanisms[TOKEN]()
        assert exchange.grant is None
        assert exchange.respond(signed(name)) == b""
        assert (exchange.grant.name, exchange.grant.ledgers) == (name, None)
        assert exchange.grant.expires_in is None
    exchange = access.mechanisms[TOKEN]()
    exchange.respond(signed("writer", time.time() + 100))
    assert 90 < exchange.grant.expires_in < 110


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (signed("alice"), "alice may not use bookies: security.bookie_roles says who"),
        (signed("writer", time.time() - 1), "the token has expired"),
        (signed("writer", secret=b"x" * 32), "signature is wrong"),
        (bytes(1 << 20), "the token is too large"),
        (b"", "it is no token"),
    ],
)
def test_tokens_that_let_nobody_in(secret, token, why):
    access, _ = opened(Security(token_secret_key=secret, bookie_roles=("writer",)))
    exchange = access.mechanisms[TOKEN]()
    with pytest.raises(Unauthenticated, match=why):
        exchange.respond(token)
    assert exchange.grant is None


def test_without_authorization_any_token_will_do(secret):
    access, _ = opened(Security(token_secret_key=secret, authorization=False))
    exchange = access.mechanisms[TOKEN]()
    exchange.respond(signed("alice"))
    assert exchange.grant.name == "alice"


def test_a_ticket_is_for_its_ledgers(secret):
    office = TicketOffice(KEY, 60)
    access, _ = opened(Security(token_secret_key=secret), office)
    ((_, ticket),) = office.issue([3, 5], CLOCK.wall_ms())
    exchange = access.mechanisms[TICKET]()
    exchange.respond(ticket)
    assert exchange.grant.ledgers == {3, 5}
    assert 50 < exchange.grant.expires_in < 70
    with pytest.raises(Unauthenticated):
        access.mechanisms[TOKEN]().respond(ticket)
    with pytest.raises(Unauthenticated):
        access.mechanisms[TICKET]().respond(signed("root"))
    office.key = b"j" * 32
    with pytest.raises(Unauthenticated, match="not signed with the key"):
        access.mechanisms[TICKET]().respond(ticket)


def test_people_may_have_tickets_only(tmp_path):
    people = tmp_path / "people"
    people.write_text("")
    settings = Security(htpasswd=str(people))
    access, _ = opened(settings, own_tickets(settings))
    assert set(access.mechanisms) == {TICKET}
    assert opened(Security(), own_tickets(settings))[0] is None, "nobody is asked for anything"


def test_the_key_of_tickets_is_read_again(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b"short")
    settings = Security(ticket_key=str(path))
    with pytest.raises(OperatorError, match="32 bytes or more, not 5"):
        open_tickets(settings, open_access(settings, CLOCK))
    path.write_bytes(KEY)
    guarded = open_access(settings, CLOCK)
    office = open_tickets(settings, guarded)
    assert office.key == KEY
    path.write_bytes(b"j" * 32)
    for source in guarded.sources:
        source.look()
        source.look()
    assert office.key == b"j" * 32
    ((_, ticket),) = office.issue([1], 0)
    assert tickets.read(office.key, ticket, 299_999).expires_ms == 300_000
    assert own_tickets(settings).key != own_tickets(settings).key
    assert open_tickets(Security(), guarded) is None


def test_names_of_htdigest(tmp_path):
    path = tmp_path / "digests"
    path.write_text(f"# ours\nali:bookkeeper:{secret_of('ali', 'bookkeeper', 'sesame').hex()}\n")
    access, guarded = opened(Security(bookie_digest=str(path), bookie_roles=("ali",)))
    client = PasswordCredentials(lambda: "n", "ali", "sesame").begin()
    exchange = access.mechanisms[SASL]()
    said = client.respond(b"")
    challenge = exchange.respond(said)
    assert exchange.grant is None
    assert client.respond(exchange.respond(client.respond(challenge))) is None
    assert exchange.grant.name == "ali"
    path.write_text("")
    for source in guarded.sources:
        source.look()
        source.look()
    client = PasswordCredentials(lambda: "n", "ali", "sesame").begin()
    client.respond(b"")
    exchange = access.mechanisms[SASL]()
    with pytest.raises(Unauthenticated):
        exchange.respond(client.respond(exchange.respond(b"")))


@pytest.mark.parametrize(
    "line", ["ali", "ali:other:" + "0" * 32, "ali:bookkeeper:x", ":bookkeeper:" + "0" * 32,
             "ali:bookkeeper:" + "x" * 32]
)  # fmt: skip
def test_what_htdigest_does_not_write(line):
    with pytest.raises(ValueError, match="line 2"):
        digests_in("\n" + line)


class Tls:
    def __init__(self, name):
        self._name = name

    def getpeercert(self):
        if not self._name:
            return None
        until = datetime.now(UTC) + timedelta(seconds=100)
        return {
            "subject": ((("commonName", self._name),),),
            "notAfter": f"{until:%b %d %H:%M:%S %Y} GMT",
        }


def test_certificates_count_where_roles_are_named():
    access, _ = opened(Security(bookie_roles=("gateway",)), with_certificates=True)
    assert access.certificate(Tls("gateway")).name == "gateway"
    assert 90 < access.certificate(Tls("gateway")).expires_in < 110, "as long as it is valid"
    assert access.certificate(Tls("another")) is None
    assert access.certificate(Tls("")) is None
    assert opened(Security(), with_certificates=True)[0] is None


def test_failures_count_for_the_address(secret):
    access, guarded = opened(Security(token_secret_key=secret, bookie_roles=("writer",)))
    assert not access.is_barred("10.0.0.1")
    for _ in range(50):
        access.failed("10.0.0.1", TOKEN, "wrong")
    assert access.is_barred("10.0.0.1")
    assert guarded.access.failures.failed == {TOKEN: 50}


@pytest.mark.parametrize(
    "settings",
    [Security(bookie_digest="data:,"), Security(bookie_roles=("gateway",))],
    ids=["digest", "certificate"],
)
def test_failures_count_where_others_are_asked_nothing(settings, tmp_path, caplog):
    trail = tmp_path / "audit"
    settings = structs.replace(settings, audit_log=str(trail))
    access, guarded = opened(settings, with_certificates=True)
    for _ in range(50):
        assert not access.is_barred("10.0.0.1")
        access.failed("10.0.0.1", SASL, "wrong")
    assert access.is_barred("10.0.0.1")
    assert not access.is_barred("10.0.0.2")
    assert "10.0.0.1: authentication by sasl failed: wrong" in caplog.text
    assert json.loads(trail.read_text().splitlines()[0])["host"] == "10.0.0.1"
    assert guarded.access.failures.failed == {SASL: 50}, "for the metrics"
    access.succeeded(SASL)
    assert guarded.access.failures.succeeded == {SASL: 1}


# -- a bookie's process -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        Security(htpasswd="data:,"),
        Security(scram=True),
        Security(ticket_key="data:,kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"),
        Security(htpasswd="data:,", bookie_roles=("a",)),
    ],
    ids=str,
)
def test_a_bookie_that_nobody_could_write_to_does_not_start(settings):
    with pytest.raises(OperatorError, match="nobody could write to this bookie"):
        open_bookie_security(settings, CLOCK, with_ca=False)


def test_a_bookie_asks_over_http_too(secret):
    found = open_bookie_security(Security(token_secret_key=secret), CLOCK, with_ca=False)
    assert found.asks(over_http=True)
    assert found.guarded.access.asks
    found = open_bookie_security(Security(bookie_digest="data:,"), CLOCK, with_ca=False)
    assert found.asks(over_http=False)
    assert not found.asks(over_http=True), "by HTTP there is no DIGEST-MD5"
    found = open_bookie_security(Security(bookie_roles=("a",)), CLOCK, with_ca=True)
    assert found.asks(over_http=False)
    assert not open_bookie_security(Security(), CLOCK, with_ca=True).asks(over_http=False)
