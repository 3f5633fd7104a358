"""Authentication between clients and bookies, both ways with Apache's: by the plugin `token`, which
is thirty lines of Java on their side (`TokenAuth.java`), and by BookKeeper's own `sasl`.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import jwt
import pytest
import trio

from interop_tests.bookkeeper.apache import ApacheBookie, running_bookie
from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.quorum import opened, read_all
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from interop_tests.keys import Authority
from magnetar.bookie.cluster import cluster as clusters
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.bookie.cluster.ledgers import ClusterLedgers
from magnetar.bookie.reading.errors import UnreachableEntry
from magnetar.bookie.reading.read_handle import open_ledger
from magnetar.bookie.reading.zookeeper import ZooKeeperLedgers
from magnetar.bookie.rpc.credentials import TICKET, TOKEN
from magnetar.bookie.rpc.digest_md5 import secret_of
from magnetar.bookie.rpc.messages import Authenticate
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.settings.security import Security

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

PACKAGE = "magnetar.interop.bookkeeper.TokenAuth"
INSTANCE = "6a1f0f3e-0000-4000-8000-000000000003"
SECRET = b"0123456789abcdef0123456789abcdef"
SASL = "clientAuthProviderFactoryClass=org.apache.bookkeeper.sasl.SASLClientProviderFactory\n"
JAAS = """\
BookKeeper {{
  org.apache.zookeeper.server.auth.DigestLoginModule required username="{name}" password="{word}";
}};
Bookie {{
  org.apache.zookeeper.server.auth.DigestLoginModule required user_gateway="sesame";
}};
"""
VERSIONS = [
    pytest.param(False, id="version 3"),
    pytest.param(True, id="version 2", marks=pytest.mark.heavy),
]


def signed(path: Path, subject: str, expires_in: float = 600, secret: bytes = SECRET) -> Path:
    claims = {"sub": subject, "exp": int(time.time() + expires_in)}
    path.write_text(jwt.encode(claims, secret, "HS256"))
    return path


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "key").write_bytes(SECRET)
    (folder / "key").chmod(0o600)
    digest = secret_of("gateway", "bookkeeper", "sesame").hex()
    (folder / "digests").write_text(f"gateway:bookkeeper:{digest}\n")
    (folder / "password").write_text("gateway:sesame")
    (folder / "wrong password").write_text("gateway:guess")
    signed(folder / "good", "gateway")
    signed(folder / "expired", "gateway", expires_in=-1)
    signed(folder / "stranger", "alice")
    signed(folder / "forged", "gateway", secret=b"x" * 32)
    (folder / "megabyte").write_text("a." * 500_000)
    return folder


# -- Apache's clients, our bookie -------------------------------------------------------------


async def initialize(uri: str) -> None:
    async with open_zookeeper(parse(uri)) as metadata:
        await initialize_cluster(metadata, INSTANCE)


def cluster_at(zookeeper: ZooKeeper, name: str) -> str:
    """The URI of a new cluster."""
    made = f"zk+hierarchical://{zookeeper.address}/{name}/ledgers"
    trio.run(initialize, made)
    return made


@pytest.fixture(scope="module")
def uri(zookeeper) -> str:
    return cluster_at(zookeeper, "ours")


@pytest.fixture(scope="module")
def ours(uri, secrets, tmp_path_factory) -> Iterator[Bookie]:
    """A bookie that asks for tokens, and for names."""
    more = "--metadata-uri", uri, "--http-port", "0"
    bookie = Bookie(tmp_path_factory.mktemp("ours"), *more)
    bookie.environment = {
        "MAGNETAR_SECURITY_TOKEN_SECRET_KEY": str(secrets / "key"),
        "MAGNETAR_SECURITY_BOOKIE_DIGEST": str(secrets / "digests"),
        "MAGNETAR_SECURITY_BOOKIE_ROLES": "gateway",
        "MAGNETAR_SECURITY_SUPERUSERS": "root",
    }
    with bookie:
        yield bookie


def stock(bookie: Bookie, uri: str, folder: Path, more: str, jaas: str = "") -> ApacheBookie:
    """The stock client and shell, for that bookie."""
    return ApacheBookie(uri, folder, int(bookie.address.rpartition(":")[2]), more, jaas)


def token(path: Path, *, v2: bool = False) -> str:
    wire = "useV2WireProtocol=true\n" if v2 else ""
    return f"clientAuthProviderFactoryClass={PACKAGE}$Client\ntokenFile={path}\n{wire}"


def round_trip(client: ApacheBookie) -> None:
    written = re.search(r"^ledger (\d+)$", client.client("write", "5"), re.MULTILINE)
    assert written is not None
    assert "last 4" in client.client("open", written[1])


@pytest.mark.parametrize("v2", [False, True], ids=["version 3", "version 2"])
def test_apaches_client_with_a_token(ours, uri, secrets, tmp_path, v2) -> None:
    round_trip(stock(ours, uri, tmp_path, token(secrets / "good", v2=v2)))


@pytest.mark.parametrize("v2", [False, True], ids=["version 3", "version 2"])
def test_apaches_client_with_its_own_sasl(ours, uri, tmp_path, v2) -> None:
    more = SASL + ("useV2WireProtocol=true\n" if v2 else "")
    jaas = JAAS.format(name="gateway", word="sesame")
    round_trip(stock(ours, uri, tmp_path, more, jaas))


@pytest.mark.parametrize("v2", VERSIONS)
@pytest.mark.parametrize("wrong", ["expired", "stranger", "megabyte"])
def test_apaches_client_with_what_is_wrong(ours, uri, secrets, tmp_path, wrong, v2) -> None:
    client = stock(ours, uri, tmp_path, token(secrets / wrong, v2=v2))
    client.client("write", "1", succeeds=False)


@pytest.mark.parametrize("v2", VERSIONS)
def test_apaches_client_with_nothing(ours, uri, tmp_path, v2) -> None:
    more = "useV2WireProtocol=true\n" if v2 else ""
    said = stock(ours, uri, tmp_path, more).client("write", "1", succeeds=False)
    assert "NotEnoughBookies" in said or "Unauthorized" in said


def test_apaches_client_with_a_wrong_password(ours, uri, tmp_path) -> None:
    client = stock(ours, uri, tmp_path, SASL, JAAS.format(name="gateway", word="guess"))
    client.client("write", "1", succeeds=False)
    assert "authentication by sasl failed: an unknown name, or a wrong password" in ours.log()


def test_apaches_shell(ours, uri, secrets, tmp_path) -> None:
    with_token = stock(ours, uri, tmp_path, token(secrets / "good"))
    said = with_token.shell("simpletest", "-e", "1", "-w", "1", "-a", "1", "-n", "3")
    assert "3 entries written" in said
    assert ours.address in with_token.shell("bookieinfo")


def test_its_http_is_for_superusers(ours, secrets) -> None:
    signed(secrets / "root", "root")
    asked = {
        ("/heartbeat", ""): 200,
        ("/metrics", ""): 401,
        ("/api/v1/bookie/info", ""): 401,
        ("/api/v1/bookie/info", "forged"): 401,
        ("/api/v1/bookie/info", "gateway"): 403,
        ("/api/v1/bookie/info", "root"): 200,
    }
    (secrets / "gateway").write_bytes((secrets / "good").read_bytes())
    for (path, who), status in asked.items():
        headers = {"authorization": f"Bearer {(secrets / who).read_text()}"} if who else {}
        found = httpx.get(f"http://{ours.listeners['http']}{path}", headers=headers)
        assert found.status_code == status, (path, who, found.text)
    stopped = httpx.put(f"http://{ours.listeners['http']}/api/v1/bookie/state/readonly", json={})
    assert stopped.status_code == 401


# -- our client, Apache's bookies -------------------------------------------------------------


@pytest.fixture(scope="module")
def theirs(zookeeper, secrets, tmp_path_factory) -> Iterator[dict[str, str]]:
    """A cluster with one bookie of Apache's for each way to authenticate; their URIs."""
    configured = {
        "token": f"bookieAuthProviderFactoryClass={PACKAGE}$Bookie\n"
        f"tokenSecretKey={secrets / 'key'}\n{token(secrets / 'good')}",
        "sasl": "bookieAuthProviderFactoryClass="
        f"org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory\nsaslJaasClientAllowedIds=.*\n{SASL}",
        "open": "",
    }
    with ExitStack() as running:
        found = {}
        for name, more in configured.items():
            uri = found[name] = cluster_at(zookeeper, name)
            folder = tmp_path_factory.mktemp(name)
            jaas = JAAS.format(name="gateway", word="sesame")
            running.enter_context(running_bookie(uri, folder, more, jaas))
        yield found


async def write_and_read(uri: str, security: Security) -> list[bytes] | BrokerError:
    """What is read, or why it could not be written."""
    async with opened(uri, 1, 1, 1, b"", security=security) as store:
        writer = await store.create({})
        for payload in (b"one", b"two"):
            outcome = Outcome()
            writer.append([payload], outcome)
            for error in await outcome.wait():
                if error is not None:
                    return error
        await writer.close()
        return await read_all(await store.open(writer.ledger_id, recover=False))


@pytest.mark.parametrize("proof", ["token", "sasl", "open"])
async def test_our_client_shows_apaches_bookies_what_is_right(theirs, secrets, proof) -> None:
    security = Security(bookie_token=str(secrets / "good"))
    if proof == "sasl":
        security = Security(bookie_password=str(secrets / "password"))
    assert await write_and_read(theirs[proof], security) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("proof", "shown"),
    [
        ("token", {"bookie_token": "expired"}),
        ("token", {"bookie_token": "forged"}),
        ("token", {"bookie_token": "megabyte"}),
        ("token", {"bookie_password": "password"}),
        ("token", {}),
        ("sasl", {"bookie_password": "wrong password"}),
        ("sasl", {"bookie_token": "good"}),
        ("sasl", {}),
    ],
    ids=str,
)
async def test_our_client_shows_them_what_is_wrong(theirs, secrets, proof, shown) -> None:
    security = Security(**{key: str(secrets / name) for key, name in shown.items()})
    with trio.fail_after(60):
        assert isinstance(await write_and_read(theirs[proof], security), BrokerError)


async def test_readers_without_a_loop_at_apaches_bookies(theirs, secrets) -> None:
    """As Spark's workers and `magnetar ledger read` are."""
    uri, good = theirs["token"], Security(bookie_token=str(secrets / "good"))
    assert await write_and_read(uri, good) == [b"one", b"two"]

    def read(words: Authenticate | None) -> int:
        with ZooKeeperLedgers(uri, words=words) as source, open_ledger(ledger_id, source) as ledger:
            return sum(len(run.payloads) for run in ledger.read())

    async with open_zookeeper(parse(uri)) as metadata:
        cluster = await clusters.find(metadata, parse(uri).ledgers)
        ledger_id = max(await ClusterLedgers(metadata, cluster).ids())
    token = (secrets / "good").read_bytes()
    assert await trio.to_thread.run_sync(read, Authenticate(TOKEN, token)) == 2
    for words, why in (
        (Authenticate(TICKET, token), "Apache's bookies know no tickets: read from the server"),
        (Authenticate(TOKEN, b"wrong"), "refuses the token of this reader"),
        (None, "unauthorized"),
    ):
        with pytest.raises(UnreachableEntry, match=why):
            await trio.to_thread.run_sync(read, words)


# -- certificates, both ways ------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


def tls(authority: Authority, files: tuple[str, str] | None) -> str:
    """Of Apache's clients and bookies."""
    certificate, key = files or ("", "")
    shown = f"tlsCertificatePath={certificate}\ntlsKeyStoreType=PEM\ntlsKeyStore={key}\n"
    return (
        "tlsProviderFactoryClass=org.apache.bookkeeper.tls.TLSContextFactory\n"
        f"tlsClientAuthentication={'true' if files else 'false'}\n"
        f"tlsTrustStoreType=PEM\ntlsTrustStore={authority.certificate}\n"
        f"tlsHostnameVerificationEnabled=false\n{shown if files else ''}"
    )


@pytest.fixture(scope="module")
def certified(zookeeper, authority, tmp_path_factory) -> Iterator[tuple[Bookie, str]]:
    """A bookie of ours that lets certificates of the role `writer` in, and its cluster's URI."""
    uri = cluster_at(zookeeper, "certified")
    certificate, key = authority.issue("bookie")
    files = "--tls-certificate", certificate, "--tls-key", key
    more = *files, "--tls-client-ca", authority.certificate, "--metadata-uri", uri
    bookie = Bookie(tmp_path_factory.mktemp("certified"), *more)
    bookie.environment = {"MAGNETAR_SECURITY_BOOKIE_ROLES": "writer, gateway"}
    with bookie:
        yield bookie, uri


@pytest.mark.parametrize("v2", [False, True], ids=["version 3", "version 2"])
def test_apaches_client_with_a_certificate(certified, authority, tmp_path, v2) -> None:
    bookie, uri = certified
    wire = "useV2WireProtocol=true\n" if v2 else ""
    right = authority.issue("client", unit="0:writer,other;1:cluster")
    round_trip(stock(bookie, uri, tmp_path, tls(authority, right) + wire))


def test_apaches_client_with_a_certificate_of_another_role(certified, authority, tmp_path) -> None:
    bookie, uri = certified
    for number, files in enumerate((authority.issue("other", unit="0:reader"), None)):
        folder = tmp_path / str(number)
        stock(bookie, uri, folder, tls(authority, files)).client("write", "1", succeeds=False)


@pytest.fixture(scope="module")
def theirs_certified(zookeeper, authority, tmp_path_factory) -> Iterator[str]:
    """The cluster of a bookie of Apache's that lets certificates of the role `writer` in."""
    uri = cluster_at(zookeeper, "theirs-certified")
    more = (
        "bookieAuthProviderFactoryClass=org.apache.bookkeeper.tls.BookieAuthZFactory\n"
        f"authorizedRoles=writer\n{tls(authority, authority.issue('their-bookie'))}"
    )
    with running_bookie(uri, tmp_path_factory.mktemp("theirs-certified"), more):
        yield uri


async def test_our_client_shows_apaches_bookies_a_certificate(theirs_certified, authority) -> None:
    certificate, key = authority.issue("gateway", unit="0:writer")
    shown = Security(
        bookie_ca=authority.certificate, bookie_certificate=certificate, bookie_key=key
    )
    assert await write_and_read(theirs_certified, shown) == [b"one", b"two"]
    certificate, key = authority.issue("stranger", unit="0:reader")
    wrong = Security(
        bookie_ca=authority.certificate, bookie_certificate=certificate, bookie_key=key
    )
    for security in (wrong, Security(bookie_ca=authority.certificate), Security()):
        with trio.fail_after(60):
            assert isinstance(await write_and_read(theirs_certified, security), BrokerError)


async def test_our_client_and_our_bookie(certified, authority) -> None:
    _, uri = certified
    certificate, key = authority.issue("gateway")
    shown = Security(
        bookie_ca=authority.certificate, bookie_certificate=certificate, bookie_key=key
    )
    assert await write_and_read(uri, shown) == [b"one", b"two"], "by its common name"
