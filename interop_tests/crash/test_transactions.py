"""Transactions of Pulsar's clients over `kill -9`: whole, or not at all, and as was answered.

Bare sockets begin and end them, so that a test knows what the server has said before it was killed.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from threading import Event

import httpx
import pulsar
import pytest
import trio

from interop_tests.raw import Raw
from magnetar.core.metadata.embedded import open_embedded
from magnetar.core.transactions.topic_transactions import RECORDS
from magnetar.core.transactions.transaction_id import name_of, shown
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

RECEIVE_MS = 15_000
STEPS = ("begun", "topic", "sent", "subscription", "acknowledged", "ending", "ended")
"""What the server has answered when it is killed; at `ending` the end is on its way."""
MESSAGES = 60
KILLS = 5

Txn = tuple[int, int]


class Worker:
    """A connection with a consumer of the source and a producer to the target."""

    def __init__(self, server, source: str, target: str) -> None:
        self.raw = Raw(server)
        try:
            self.raw.introduce(protocol_version=21)
            self._attach(source, target)
        except BaseException:
            self.close()
            raise

    def _attach(self, source: str, target: str) -> None:
        self.source = f"persistent://public/default/{source}"
        self.target = f"persistent://public/default/{target}"
        self._requests = itertools.count(10)
        self._sequences = itertools.count()
        self._messages: list[peer.ReceivedFrame] = []
        self.asked(peer.producer(1, 1, self.target), "PRODUCER_SUCCESS")
        shared = pb.CommandSubscribe.SHARED
        subscribe = peer.subscribe(2, 1, self.source, "s", sub_type=shared, initial_position=1)
        self.asked(subscribe, "SUCCESS")
        self.raw.say(peer.flow(1, 1000))

    def close(self) -> None:
        self.raw.socket.close()

    def asked(self, data: bytes, kind: str) -> peer.ReceivedFrame:
        """Ask, and wait for that answer; messages of the consumer may come before."""
        self.raw.say(data)
        while (received := self.receive()).kind != kind:
            assert received.kind == "MESSAGE", received
            self._messages.append(received)
        return received

    def receive(self) -> peer.ReceivedFrame:
        """The next frame; `ConnectionError` if the server is gone."""
        try:
            return self.raw.receive()
        except AssertionError as error:
            raise ConnectionError(str(error)) from error

    def message(self) -> tuple[pb.MessageIdData, bytes]:
        received = self._messages.pop(0) if self._messages else self.receive()
        assert received.kind == "MESSAGE", received
        place = received.body.message_id
        one = pb.MessageIdData(ledger_id=place.ledger_id, entry_id=place.entry_id)
        return one, peer.open_tail(received.tail).payload

    def begin(self) -> Txn:
        received = self.asked(peer.new_txn(next(self._requests)), "NEW_TXN_RESPONSE")
        return received.body.txnid_most_bits, received.body.txnid_least_bits

    def add_topic(self, txn: Txn) -> None:
        request = peer.add_partitions(next(self._requests), txn, self.target)
        received = self.asked(request, "ADD_PARTITION_TO_TXN_RESPONSE")
        assert not received.body.HasField("error"), received

    def add_subscription(self, txn: Txn) -> None:
        request = peer.add_subscription(next(self._requests), txn, self.source, "s")
        received = self.asked(request, "ADD_SUBSCRIPTION_TO_TXN_RESPONSE")
        assert not received.body.HasField("error"), received

    def send(self, txn: Txn, value: bytes) -> None:
        self.asked(peer.send_in(txn, 1, next(self._sequences), value), "SEND_RECEIPT")

    def acknowledge(self, txn: Txn, message: pb.MessageIdData) -> None:
        request = peer.ack_in(txn, next(self._requests), 1, message)
        received = self.asked(request, "ACK_RESPONSE")
        assert not received.body.HasField("error"), received

    def end(self, txn: Txn, *, commit: bool) -> int:
        """The error's code; -1 for none."""
        request = peer.end_txn(next(self._requests), txn, commit=commit)
        received = self.asked(request, "END_TXN_RESPONSE")
        return int(received.body.error) if received.body.HasField("error") else -1


@pytest.fixture
def client(magnetar_module, connect) -> pulsar.Client:
    return connect(magnetar_module.pulsar_url)


def done_until(worker: Worker, step: str, *, commit: bool) -> Txn:
    """Go through a transaction, up to that step."""
    message, value = worker.message()
    txn = worker.begin()
    for name, action in (
        ("topic", lambda: worker.add_topic(txn)),
        ("sent", lambda: worker.send(txn, value)),
        ("subscription", lambda: worker.add_subscription(txn)),
        ("acknowledged", lambda: worker.acknowledge(txn, message)),
        ("ending", lambda: worker.raw.say(peer.end_txn(9, txn, commit=commit))),
        ("ended", lambda: worker.end(txn, commit=commit)),
    ):
        if STEPS.index(name) > STEPS.index(step):
            break
        if (name, step) != ("ending", "ended"):
            action()
    return txn


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_after_a_step(magnetar_module, client, topics, step, commit) -> None:
    server, source, target = magnetar_module, topics(), topics()
    for name in (source, target):
        client.subscribe(name, "s", pulsar.ConsumerType.Shared).close()
    client.create_producer(source, batching_enabled=False).send(b"m")
    worker = Worker(server, source, target)
    txn = done_until(worker, step, commit=commit)
    worker.close()
    server.kill()
    server.start()
    with closing(Worker(server, source, target)) as again:
        if step == "ended":  # and nothing changes that
            changed = again.end(txn, commit=not commit)
            assert changed in (pb.TransactionNotFound, pb.InvalidTxnStatus)
        ended = again.end(txn, commit=commit)
    if step in ("ending", "ended"):
        # repeated while it is carried out, or after that
        assert ended in (-1, pb.TransactionNotFound)
    elif step == "begun":
        assert ended == pb.TransactionNotFound, "nothing of it was stored"
    else:
        assert ended == -1, "it was still open"
    reader = client.create_reader(target, pulsar.MessageId.earliest)
    is_there = commit and STEPS.index(step) >= STEPS.index("sent")
    assert reader.has_message_available() is is_there
    if is_there:
        assert reader.read_next(RECEIVE_MS).data() == b"m"
    is_done = commit and STEPS.index(step) >= STEPS.index("acknowledged")
    consumer = client.subscribe(source, "s", pulsar.ConsumerType.Shared)
    client.create_producer(source, batching_enabled=False).send(b"next")
    assert consumer.receive(RECEIVE_MS).data() == (b"next" if is_done else b"m")


async def _overwrite(folder: Path, path: str, value: bytes | None) -> None:
    async with open_embedded(folder / "metadata") as store:
        found = await store.get(path)
        assert found is not None
        if value is None:
            await store.delete(path, found.version)
        else:
            await store.put(path, value, found.version)


@pytest.mark.parametrize("are_loaded", [True, False], ids=["loaded", "not-loaded"])
@pytest.mark.parametrize("record", [b"\x00damaged", None], ids=["damaged", "lost"])
def test_a_lost_decision_is_given_up_by_an_operator(
    magnetar_module, client, topics, record, are_loaded
) -> None:
    """What a repair of the metadata may leave: topics wait for a transaction that nobody knows."""
    server, source, target = magnetar_module, topics(), topics()
    for name in (source, target):
        client.subscribe(name, "s", pulsar.ConsumerType.Shared).close()
    client.create_producer(source, batching_enabled=False).send(b"m")
    worker = Worker(server, source, target)
    txn = done_until(worker, "acknowledged", commit=True)
    client.create_producer(target, batching_enabled=False).send(b"behind")
    worker.close()
    server.stop()
    path = f"{RECORDS}/{name_of(txn)}"
    trio.run(_overwrite, server.data_dir, path, record)
    server.start()
    if record is not None:
        assert f"transaction {name_of(txn)}: the record {path} cannot be read" in server.logs()
    admin, here = f"{server.http_url}/admin", "public/default"
    if are_loaded:
        for name in (source, target):
            stats = httpx.get(f"{admin}/v2/persistent/{here}/{name}/stats").json()
            assert stats["hangingTransactions"] == [shown(txn)]
        asked = f"{admin}/v3/transactions/transactionInBufferStats/{here}/{target}"
        begun = httpx.get(f"{asked}/{txn[0]}/{txn[1]}").json()
        assert begun["startPosition"] is not None
        asked = f"{admin}/v3/transactions/pendingAckStats/{here}/{source}/s"
        assert httpx.get(asked).json()["ongoingTxnSize"] == 1
        reader = client.create_reader(target, pulsar.MessageId.earliest)
        assert not reader.has_message_available()
    abort = f"{admin}/v3/transactions/abortTransaction/{txn[0]}/{txn[1]}"
    assert httpx.post(abort).status_code == 204
    before = len(server.logs())
    server.kill()
    server.start()
    assert "cannot be read" not in server.logs()[before:]
    reader = client.create_reader(target, pulsar.MessageId.earliest)
    assert reader.read_next(RECEIVE_MS).data() == b"behind"
    consumer = client.subscribe(source, "s", pulsar.ConsumerType.Shared)
    assert consumer.receive(RECEIVE_MS).data() == b"m"
    assert httpx.post(abort).status_code == 404


@pytest.mark.parametrize("commit", [True, False])
def test_the_first_of_two_ends_counts(magnetar_module, client, topics, commit) -> None:
    """Behind the messages and each other, without waiting for an answer; also over a kill."""
    server, source, target, rounds = magnetar_module, topics(), topics(), 20
    worker = Worker(server, source, target)
    for number in range(rounds):
        txn = worker.begin()
        worker.add_topic(txn)
        worker.raw.say(
            peer.send_in(txn, 1, number, b"%d" % number)
            + peer.end_txn(5, txn, commit=commit)
            + peer.end_txn(6, txn, commit=not commit)
        )
        heard = [worker.receive().body for _ in range(3)]
        answers = {each.request_id: each for each in heard if hasattr(each, "request_id")}
        assert not answers[5].HasField("error"), heard
        assert answers[6].error in (pb.InvalidTxnStatus, pb.TransactionNotFound), heard
    worker.close()
    server.kill()
    server.start()
    reader = client.create_reader(target, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(RECEIVE_MS).data())
    assert found == [b"%d" % number for number in range(rounds if commit else 0)]


def process(server, source: str, target: str, done: list[bytes], is_up: Event) -> None:
    """From source to target, each message in a transaction, whatever happens to the server."""
    doubtful: tuple[Txn, bytes] | None = None
    """One that may have been committed."""
    while len(done) < MESSAGES:
        assert is_up.wait(60), "the server does not come back"
        with suppress(OSError), closing(Worker(server, source, target)) as worker:
            if doubtful is not None:
                if worker.end(doubtful[0], commit=False) != -1:
                    done.append(doubtful[1])  # it was committed before
                doubtful = None
            while len(done) < MESSAGES:
                message, value = worker.message()
                txn = worker.begin()
                worker.add_topic(txn)
                doubtful = txn, value
                worker.add_subscription(txn)
                worker.send(txn, value)
                worker.acknowledge(txn, message)
                assert worker.end(txn, commit=True) == -1
                doubtful = None
                done.append(value)


def test_exactly_once_over_kills(magnetar_module, client, topics) -> None:
    """What a killed server leaves undecided is given up, unless it was committed: so whatever comes
    again was not stored before.
    """
    server, source, target, random = magnetar_module, topics(), topics(), Random(7)
    for name in (source, target):
        client.subscribe(name, "s", pulsar.ConsumerType.Shared).close()
    producer = client.create_producer(source, batching_enabled=False)
    sent = [b"%d" % number for number in range(MESSAGES)]
    for value in sent:
        producer.send(value)
    done: list[bytes] = []
    is_up = Event()
    is_up.set()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(process, server, source, target, done, is_up)
        for kill in range(1, KILLS + 1):
            while not working.done() and len(done) < kill * MESSAGES // (KILLS + 2):
                wait([working], random.uniform(0.001, 0.02))
            is_up.clear()
            server.kill()
            server.start()
            is_up.set()
        working.result(60)
    reader = client.create_reader(target, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(RECEIVE_MS).data())
    assert sorted(found, key=int) == sent
