"""A gateway whose bookies ask who is there: what it shows them, that a token is replaced while it
writes, and tickets for those who read ledgers themselves.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pulsar
import pytest
import trio
from msgspec.structs import replace

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.gateway import Gateway
from interop_tests.bookkeeper.recovery import Recovery, command, is_repaired, members, wait_for
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from interop_tests.security.pulsar_people import SECRET, token
from interop_tests.waiting import until
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.core.ledger.read import tickets
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper
from magnetar.spark_connector import options as source
from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.planning import planner
from magnetar.spark_connector.reading.range_reader import Task, batches

pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
TICKET_KEY = b"t" * 32


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "key").write_bytes(SECRET)
    (folder / "tickets").write_bytes(TICKET_KEY)
    (folder / "token").write_text(token("gateway", 600))
    for each in folder.iterdir():
        each.chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def uri(zookeeper: ZooKeeper) -> str:
    made = f"zk+hierarchical://{zookeeper.address}/ledgers"

    async def begin() -> None:
        async with open_zookeeper(parse(made), 10) as store:
            await initialize_cluster(store, "6a1f0f3e-0000-4000-8000-000000000004")

    trio.run(begin)
    return made


@pytest.fixture(scope="module")
def bookies(uri: str, secrets: Path, tmp_path_factory) -> Iterator[list[Bookie]]:
    with ExitStack() as stack:
        found = []
        for _ in range(3):
            bookie = asking(tmp_path_factory.mktemp("bookie"), uri, secrets)
            found.append(stack.enter_context(bookie))
        yield found


def asking(folder: Path, uri: str, secrets: Path) -> Bookie:
    bookie = Bookie(folder, "--metadata-uri", uri, "--zk-timeout", "2", "--http-port", "0")
    bookie.environment = {
        "MAGNETAR_SECURITY_OPEN_METRICS": "true",
        "MAGNETAR_SECURITY_TOKEN_SECRET_KEY": str(secrets / "key"),
        "MAGNETAR_SECURITY_BOOKIE_ROLES": "gateway",
        "MAGNETAR_SECURITY_TICKET_KEY": str(secrets / "tickets"),
    }
    return bookie


@pytest.fixture(scope="module")
def gateway(zookeeper, bookies, secrets, tmp_path_factory) -> Iterator[Gateway]:
    configuration = tmp_path_factory.mktemp("gateway") / "magnetar.toml"
    configuration.write_text(f"""[security]
token_secret_key = "{secrets / "key"}"
superusers = ["root"]
bookie_token = "{secrets / "token"}"
ticket_key = "{secrets / "tickets"}"
""")
    folder = configuration.parent / "runs"
    with Gateway(folder, zookeeper, "--config", str(configuration)) as made:
        made.serve()
        yield made


def client_of(gateway: Gateway) -> pulsar.Client:
    root = pulsar.AuthenticationToken(token("root"))
    return pulsar.Client(f"pulsar://{gateway.url('pulsar')}", authentication=root)


def show(gateway: Gateway, secrets: Path, said: str) -> None:
    """Have the gateway show another token, and wait until it has read it."""
    line = f"{secrets / 'token'} has changed and is read again"
    before = gateway.log().count(line)
    (secrets / "token").write_text(said)
    until(lambda: gateway.log().count(line) > before)


def test_a_token_is_replaced_while_messages_are_written(gateway, bookies, secrets) -> None:
    """The first one ends after 8 s; bookies end connections whose token has expired."""
    show(gateway, secrets, token("gateway", 8))
    until = time.monotonic() + 10
    client = client_of(gateway)
    producer = client.create_producer("lasting", batching_enabled=False)
    producer.send(b"first")
    show(gateway, secrets, token("gateway", 600))
    sent = 1
    while time.monotonic() < until:
        producer.send(b"another")
        sent += 1
    client.close()
    assert "closed the connection" not in gateway.log()
    assert values(planned(gateway, "lasting")) == [b"first"] + [b"another"] * (sent - 1)


def planned(gateway: Gateway, topic: str) -> list[Task]:
    login = {"authPluginClassName": "token", "authParams": token("root")}
    where = {"service.url": f"http://{gateway.url('http')}", "topic": topic}
    chosen = source.parse({**where, **login, "columns": "value", "pollTimeoutMs": "30000"})
    return planner.batch(chosen, 1)


def values(tasks: list[Task]) -> list[bytes]:
    return [row["value"] for task in tasks for one in batches(task) for row in one.to_pylist()]


def test_readers_show_tickets_to_the_clusters_bookies(gateway, uri) -> None:
    client = client_of(gateway)
    client.create_producer("ticketed").send(b"one")
    client.close()
    tasks = planned(gateway, "ticketed")
    assert all(task.tickets for task in tasks)
    assert values(tasks) == [b"one"]
    hopeless = partial(replace, service_urls=("http://127.0.0.1:1",), timeout_seconds=1)
    for wrong in (
        {},
        {each: next(tickets.issue(b"x" * 32, [each], 1 << 50))[1] for each in tasks[0].ledgers},
        {each: next(tickets.issue(TICKET_KEY, [1 << 40], 1 << 50))[1] for each in tasks[0].ledgers},
    ):
        with pytest.raises(ServiceError):
            values([hopeless(task, tickets=wrong) for task in tasks])


def test_tools_show_the_token_of_the_settings(gateway, bookies, uri, secrets, monkeypatch) -> None:
    tasks = planned(gateway, "lasting")
    ledger = str(next(iter(tasks[0].ledgers)))
    monkeypatch.setenv("MAGNETAR_SECURITY_BOOKIE_TOKEN", str(secrets / "token"))
    words = "ledger", "read", ledger, "--first", "0", "--last", "0"
    assert command(uri, *words)["entry"] == 0
    command(uri, "bookie", "sanity", bookies[0].address)
    monkeypatch.delenv("MAGNETAR_SECURITY_BOOKIE_TOKEN")
    assert "unauthorized" in command(uri, *words, succeeds=False)


def logins(bookie: Bookie, outcome: str) -> float:
    """How many a bookie has had by tokens, as its metrics say."""
    page = httpx.get(f"http://{bookie.listeners['http']}/metrics").text
    name = f'pulsar_authentication_{outcome}_total{{auth_method="token"}} '
    return sum(float(line.removeprefix(name)) for line in page.splitlines() if name in line)


def test_logins_are_counted_by_each_bookie(gateway, bookies, uri, secrets, tmp_path, monkeypatch):
    (tmp_path / "wrong").write_text(token("gateway", secret=b"x" * 32))
    (tmp_path / "wrong").chmod(0o600)
    monkeypatch.setenv("MAGNETAR_SECURITY_BOOKIE_TOKEN", str(tmp_path / "wrong"))
    before = [(logins(one, "success"), logins(one, "failures")) for one in bookies]
    command(uri, "bookie", "sanity", bookies[0].address, succeeds=False)
    monkeypatch.setenv("MAGNETAR_SECURITY_BOOKIE_TOKEN", str(secrets / "token"))
    command(uri, "bookie", "sanity", bookies[1].address)
    after = [(logins(one, "success"), logins(one, "failures")) for one in bookies]
    assert after[0][1] > before[0][1]
    assert after[1][0] > before[1][0]
    assert (after[1][1], after[2][1]) == (before[1][1], before[2][1])


def test_what_a_lost_bookie_had_is_copied(gateway, bookies, uri, secrets, tmp_path, monkeypatch):
    """From bookies that ask, to one that asks: a ledger by a command, the others by AutoRecovery,
    which shows the token of the settings as well.
    """
    gateway.process.terminate()
    gateway.process.wait(30)
    ledgers = [each["ledger"] for each in command(uri, "ledger", "list")]
    kept = {number: str(members(uri, number)) for number in ledgers}
    holds = {one: [number for number in ledgers if one.address in kept[number]] for one in bookies}
    lost = max(bookies, key=lambda one: len(holds[one]))
    first, *others = holds[lost]
    assert others
    lost.kill()
    with asking(tmp_path, uri, secrets):
        words = "bookie", "recover", lost.address, "--ledger", str(first)
        command(uri, *words, succeeds=False)
        monkeypatch.setenv("MAGNETAR_SECURITY_BOOKIE_TOKEN", str(secrets / "token"))
        command(uri, *words)
        assert lost.address not in str(members(uri, first))
        with Recovery(uri, tmp_path / "recovery") as recovery:
            for ledger in others:
                wait_for(partial(is_repaired, uri, ledger, lost.address), recovery.log)
