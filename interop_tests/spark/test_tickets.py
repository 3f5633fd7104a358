"""Reading and writing where the server asks who one is: rights, and tickets for its bookie."""

import socket
from base64 import b64encode
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from interop_tests.security.pulsar_people import Administrator, secured, token
from magnetar import Standalone
from magnetar.bookie.rpc import version3
from magnetar.bookie.rpc.credentials import TICKET, TOKEN
from magnetar.bookie.rpc.messages import Add, Authenticate, BookieMessage, Read, Status
from magnetar.core.ledger.read import tickets
from magnetar.spark_connector import options as source
from magnetar.spark_connector.errors import RefusedError, ServiceError
from magnetar.spark_connector.planning import planner
from magnetar.spark_connector.reading.range_reader import Task, batches
from magnetar.spark_connector.writing import options as sink
from magnetar.spark_connector.writing.commits import commit
from magnetar.spark_connector.writing.service import TaskPlace
from magnetar.spark_connector.writing.tasks import write

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.standalone

LENDS = {"bookie_port": 0}
NUMBERS = count()
FOREVER = 1 << 50
"""In ms of the wall clock."""


@pytest.fixture(scope="module")
def key(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tickets") / "key"
    path.write_bytes(b"k" * 32)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def server(key, tmp_path_factory) -> Iterator[Standalone]:
    with secured(tmp_path_factory.mktemp("people"), LENDS, ticket_key=str(key)) as made:
        yield made


@pytest.fixture(scope="module")
def other(key, tmp_path_factory) -> Iterator[Standalone]:
    """A server with a key of its own, which it has made."""
    with secured(tmp_path_factory.mktemp("others"), LENDS) as made:
        yield made


@pytest.fixture(scope="module")
def administrator(server) -> Iterator[Administrator]:
    made = Administrator(server)
    yield made
    made.http.close()


def given(server: Standalone, topic: str, who: str) -> dict[str, str]:
    login = {"authPluginClassName": "token", "authParams": token(who)}
    return {"service.url": server.http_url, "topic": topic, **(login if who else {})}


def send(server: Standalone, topic: str, who: str, *values: str, delivery: str) -> None:
    chosen = sink.parse({**given(server, topic, who), "delivery": delivery}, stream=True)
    place = TaskPlace(f"s-{topic}", "q", 0, 0)
    written = write([pa.record_batch({"value": list(values)})], chosen, place)
    commit(chosen, place, [written])


def planned(server: Standalone, topic: str, who: str, **more: str) -> list[Task]:
    quick = {"columns": "value", "pollTimeoutMs": "2000"}
    return planner.batch(source.parse({**given(server, topic, who), **quick, **more}), 1)


def values(tasks: list[Task]) -> list[bytes]:
    return [row["value"] for task in tasks for one in batches(task) for row in one.to_pylist()]


def with_ticket(tasks: list[Task], ticket: bytes, **more: object) -> list[Task]:
    return [
        replace(task, tickets=dict.fromkeys(task.ledgers, ticket), **more)  # type: ignore[arg-type]
        for task in tasks
    ]


@pytest.fixture
def topic(server, administrator, request) -> str:
    """With two messages, which `reader` may read."""
    name = f"{request.node.name.partition('[')[0]}-{next(NUMBERS)}"
    send(server, name, "root", "one", "two", delivery="at_least_once")
    administrator.grant("reader", "consume", where=f"/admin/v2/persistent/public/default/{name}")
    return name


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once", "dedup"])
@pytest.mark.parametrize("read_from", ["bookies", "gateway"])
def test_who_may_reads_and_writes(server, administrator, delivery, read_from) -> None:
    name = f"all-{delivery}-{read_from}"
    path = f"/admin/v2/persistent/public/default/{name}"
    administrator.http.put(path).raise_for_status()
    administrator.grant("worker", "consume", "produce", where=path)
    send(server, name, "worker", "one", "two", delivery=delivery)
    tasks = planned(server, name, "worker", readFrom=read_from)
    assert values(tasks) == [b"one", b"two"]
    assert all(bool(task.tickets) is (read_from == "bookies") for task in tasks)


def test_a_name_and_a_password(server, administrator, topic) -> None:
    administrator.grant("bob", "consume", where=f"/admin/v2/persistent/public/default/{topic}")
    login = {"authPluginClassName": "basic", "authParams": "bob:builder"}
    chosen = source.parse({**given(server, topic, ""), **login, "columns": "value"})
    assert values(planner.batch(chosen, 1)) == [b"one", b"two"]


@pytest.mark.parametrize(("who", "status"), [("stranger", 403), ("", 401)])
def test_who_may_not_reads_nothing(server, topic, who, status) -> None:
    with pytest.raises(RefusedError, match=f"answers {status}"):
        planned(server, topic, who)


def test_a_right_that_is_taken_ends_with_the_ticket(server, administrator, topic) -> None:
    tasks = planned(server, topic, "reader")
    administrator.revoke("reader", where=f"/admin/v2/persistent/public/default/{topic}")
    assert values(tasks) == [b"one", b"two"], "until the ticket expires"
    expired = with_ticket(tasks, ticket_for(tasks, expires_ms=1))
    with pytest.raises(ServiceError, match="reader may not"):
        values(expired)


def ticket_for(tasks: list[Task], expires_ms: int = FOREVER, key: bytes = b"k" * 32) -> bytes:
    ledgers = [each for task in tasks for each in task.ledgers]
    ((_, ticket),) = tickets.issue(key, ledgers, expires_ms)
    return ticket


def test_a_ticket_that_has_expired_is_renewed(server, topic) -> None:
    tasks = planned(server, topic, "reader")
    assert values(with_ticket(tasks, ticket_for(tasks, expires_ms=1))) == [b"one", b"two"]


def alone(tasks: list[Task]) -> dict[str, tuple[str, ...]]:
    """Where nobody renews anything."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return {"service_urls": (f"http://127.0.0.1:{unused.getsockname()[1]}",)}


@pytest.mark.parametrize("how", ["expired", "forged", "changed", "another ledger's", "another's"])
def test_tickets_that_bookies_refuse(server, other, topic, hurried, how) -> None:
    tasks = planned(server, topic, "reader")
    good = ticket_for(tasks)
    assert values(with_ticket(tasks, good, **alone(tasks))) == [b"one", b"two"]
    ((_, elsewhere),) = tickets.issue(b"k" * 32, [1 << 40], FOREVER)
    wrong = {
        "expired": ticket_for(tasks, expires_ms=1),
        "forged": ticket_for(tasks, key=b"f" * 32),
        "changed": good[:-1] + bytes([good[-1] ^ 1]),
        "another ledger's": elsewhere,
        "another's": tickets_of(other)[0],
    }[how]
    said = "unauthorized" if how == "another ledger's" else "it refuses the ticket of this reader"
    with pytest.raises(ServiceError, match=said):
        values(with_ticket(tasks, wrong, **alone(tasks)))


def tickets_of(server: Standalone) -> list[bytes]:
    """As another server issues them."""
    send(server, "theirs", "root", "x", delivery="at_least_once")
    return [each for task in planned(server, "theirs", "root") for each in task.tickets.values()]


def test_a_ticket_is_nothing_elsewhere(server, topic) -> None:
    ticket = ticket_for(planned(server, topic, "reader"))
    for said in (f"Bearer {b64encode(ticket).decode()}", f"Bearer {ticket.hex()}"):
        found = httpx.get(f"{server.http_url}/admin/v2/clusters", headers={"authorization": said})
        assert found.status_code == 401
    assert asked(server, Authenticate(TOKEN, ticket))[0].status is Status.UNAUTHORIZED


def asked(server: Standalone, *requests: BookieMessage) -> list[BookieMessage]:
    """The answers of the bookie's port, on one connection."""
    host, _, port = server.listeners["bookie"].rpartition(":")
    answers = []
    with socket.create_connection((host, int(port)), timeout=20) as peer:
        for number, request in enumerate(requests):
            body = version3.pack_request(number, request)
            peer.sendall(len(body).to_bytes(4, "big") + body)
            size = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
            answers.append(version3.parse_response(peer.recv(size, socket.MSG_WAITALL))[1])
    return answers


def test_the_bookies_port_asks_everybody(server, topic) -> None:
    tasks = planned(server, topic, "reader")
    (ledger_id,) = {each for task in tasks for each in task.ledgers}
    read, write = Read(ledger_id, 0), Add(ledger_id, 2, bytes(20), bytes(40))
    for request in (read, write):
        assert asked(server, request)[0].status is Status.UNAUTHORIZED
    ticket = Authenticate(TICKET, ticket_for(tasks))
    _, first, second = asked(server, ticket, read, write)
    assert (first.status, second.status) == (Status.OK, Status.UNAUTHORIZED)
    for who, status in (("root", Status.OK), ("reader", Status.UNAUTHORIZED)):
        answers = asked(server, Authenticate(TOKEN, token(who).encode()), *[read] * (who == "root"))
        assert getattr(answers[-1], "status", Status.OK) is status, who


@pytest.mark.spark
def test_spark_reads_with_a_ticket(spark, server, topic) -> None:
    reader = spark.read.format("magnetar").options(**given(server, topic, "reader"))
    assert [bytes(row.value) for row in reader.load().select("value").collect()] == [
        b"one", b"two",
    ]  # fmt: skip
