"""A disk that is full, and one that fails: what was acknowledged stays, and nobody is deceived."""

import os
import queue
import resource
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pulsar
import pytest
from confluent_kafka import Producer

from interop_tests import disks
from interop_tests.waiting import until
from magnetar import standalone
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

RECEIVE_MS = 15_000
BODY_BYTES = 16 * 1024
FULL = {"disk_usage_threshold": 0.000_002, "disk_usage_low_water_mark": 0.000_001}
"""Any disk holds more than that part."""
FILLER_BYTES = 1 << 30
"""Much more than what else comes and goes on that disk meanwhile."""


def publish_until(client, topic, refused) -> int:
    """Send numbers until one is refused; how many were acknowledged."""
    producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=3_000)
    for number in range(10_000):
        try:
            producer.send(b"%d " % number + bytes(BODY_BYTES))
        except refused:
            return number
    raise AssertionError("everything was acknowledged")


def numbers(client, topic, count) -> list[int]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    return [int(reader.read_next(RECEIVE_MS).data().split()[0]) for _ in range(count)]


def test_full(connect, raw, topic, tmp_path):
    """Writes are refused and `/readyz` says so; what is stored can be read and acknowledged."""
    with standalone(tmp_path) as server:
        client = connect(server.pulsar_url)
        client.subscribe(topic, "s").close()
        producer = client.create_producer(topic)
        for number in range(10):
            producer.send(b"%d" % number)
    with standalone(tmp_path, storage=FULL) as server:
        answer = httpx.get(f"{server.http_url}/readyz")
        assert answer.status_code == 503
        assert "disk is full" in answer.json()["reason"]
        assert httpx.get(f"{server.http_url}/healthz").status_code == 200
        client = connect(server.pulsar_url, operation_timeout_seconds=3)
        assert numbers(client, topic, 10) == list(range(10))
        consumer = client.subscribe(topic, "s")
        consumer.acknowledge(consumer.receive(RECEIVE_MS))
        with raw(server) as one:  # stock clients try again until there is room
            refused = one.introduce().ask(peer.producer(1, 1, topic))
            assert (refused.kind, refused.body.error) == ("ERROR", pb.PersistenceError)
    with standalone(tmp_path) as server:
        assert httpx.get(f"{server.http_url}/readyz").status_code == 200
        client = connect(server.pulsar_url)
        client.create_producer(topic).send(b"10")
        assert numbers(client, topic, 11) == list(range(11))


def almost_full(folder) -> dict[str, float]:
    """Settings of a disk that is full when it holds half a `FILLER_BYTES` more."""
    usage = shutil.disk_usage(folder)
    used = usage.total - usage.free
    return {
        "disk_usage_threshold": (used + FILLER_BYTES // 2) / usage.total,
        "disk_usage_low_water_mark": (used + FILLER_BYTES // 4) / usage.total,
        "disk_check_interval_seconds": 0.02,
    }


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the disk is filled at a stroke")
def test_room_again(connect, topic, tmp_path):
    """Who writes hears of it, waits longer each time, and goes on by itself."""
    filler = tmp_path / "filler"
    with standalone(tmp_path / "data", storage=almost_full(tmp_path)) as server:
        client = connect(server.pulsar_url)
        producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=0)
        producer.send(b"0")
        ready = f"{server.http_url}/readyz"
        try:
            with filler.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, FILLER_BYTES)
            until(lambda: httpx.get(ready).status_code == 503)
            answers: queue.Queue[pulsar.Result] = queue.Queue()
            producer.send_async(b"1", lambda result, _id: answers.put(result))
            hasty = connect(server.pulsar_url, operation_timeout_seconds=3)
            with pytest.raises(pulsar.Timeout):
                hasty.create_producer(topic)
            assert answers.empty()
            assert numbers(client, topic, 1) == [0]
        finally:
            filler.unlink()
        until(lambda: httpx.get(ready).status_code == 200)
        assert answers.get(timeout=RECEIVE_MS / 1000) == pulsar.Result.Ok
        assert numbers(client, topic, 2) == [0, 1]
        said = server.logs()
        assert said.count("a write failed") == said.count("is written again") == 1
        assert said.count("Producer refused") < 20, "in three seconds, of two clients"


@pytest.mark.java
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the disk is filled at a stroke")
def test_room_again_in_java(java, topic, topics, tmp_path):
    """Who comes meanwhile is told what is the matter; who was there goes on by itself."""
    filler = tmp_path / "filler"
    with standalone(tmp_path / "data", storage=almost_full(tmp_path)) as server:
        ready = f"{server.http_url}/readyz"
        playing = java.start("again.sync", server.pulsar_url, topic)
        playing.wait_for("midway")
        try:
            with filler.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, FILLER_BYTES)
            until(lambda: httpx.get(ready).status_code == 503)
            playing.tell("on")
            received = java.play("access.create", server.pulsar_url, topics(), patience=2)
            assert received == "BrokerPersistenceException"
        finally:
            filler.unlink()
        assert playing.result() == [str(number) for number in range(20)]


@pytest.fixture
def small_disk(tmp_path):
    """A file system with room for 128 MB, and a way to give it more."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root's privilege")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_not_a_byte_left(connect, topic, small_disk):
    """Nothing is held in reserve: what the disk itself refuses is not acknowledged. Clients try
    again until there is room, and the server needs no other start for that.
    """
    storage = {
        "disk_usage_threshold": 1.0,
        "disk_usage_low_water_mark": 1.0,
        "disk_check_interval_seconds": 1,
        "journal_max_size_mb": 8,
        "journal_max_backups": 0,
    }
    with standalone(small_disk / "data", storage=storage) as server:
        client = connect(server.pulsar_url)
        client.subscribe(topic, "s").close()
        producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=0)
        results, number = queue.SimpleQueue(), -1
        with suppress(queue.Empty):
            while True:
                number += 1
                body = b"%d " % number + bytes(BODY_BYTES)
                producer.send_async(body, lambda result, _id: results.put(result))
                assert results.get(timeout=5) == pulsar.Result.Ok
        assert number > 100
        assert "No space left on device" in server.logs()
        larger = ["mount", "-o", "remount,size=512m", str(small_disk)]
        subprocess.run(larger, check=True)
        assert results.get(timeout=60) == pulsar.Result.Ok
        server.kill()
        server.restart()
        again = connect(server.pulsar_url)
        assert numbers(again, topic, number + 1) == list(range(number + 1))


def test_a_start_on_a_full_disk(connect, topic, small_disk):
    """What is stored is read; who writes is back within its own back-off once there is room."""
    storage = {"disk_check_interval_seconds": 0.1, "journal_max_size_mb": 8}
    filler = small_disk / "filler"
    with standalone(small_disk / "data", storage=storage) as server:
        client = connect(server.pulsar_url)
        client.subscribe(topic, "s").close()
        client.create_producer(topic).send(b"0")
        client.close()
        server.stop()
        usage = shutil.disk_usage(small_disk)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, usage.free - 400_000)
        server.start()
        ready = f"{server.http_url}/readyz"
        seen = [httpx.get(ready).status_code for _ in range(20)]
        assert set(seen) == {503}, "it does not flap"
        client = connect(server.pulsar_url)
        consumer = client.subscribe(topic, "s")
        message = consumer.receive(RECEIVE_MS)
        assert message.data() == b"0"
        consumer.acknowledge(message)
        kafka = Producer({"bootstrap.servers": server.bootstrap_servers})
        received: list[object] = []
        kafka.produce(
            topic.rsplit("/", 1)[-1], b"1", on_delivery=lambda error, _: received.append(error)
        )
        with pytest.raises(pulsar.Timeout):
            connect(server.pulsar_url, operation_timeout_seconds=3).create_producer(topic)
        assert received == []
        filler.unlink()
        until(lambda: httpx.get(ready).status_code == 200)
        client.create_producer(topic).send(b"2")
        assert kafka.flush(20) == 0
        assert received == [None]
        found = sorted(consumer.receive(RECEIVE_MS).data() for _ in range(2))
        assert found == [b"1", b"2"]
        until(lambda: "there is room for the mark of this start" in server.logs())
        assert server.logs().count("no room for the mark of this start") == 1


def test_killed_and_no_room_to_write_the_journal_once_more(connect, topic, small_disk):
    """The start leaves where it is what entry logs have of it."""
    storage = {
        "disk_usage_threshold": 1.0,
        "disk_usage_low_water_mark": 1.0,
        "journal_max_size_mb": 8,
        "journal_max_backups": 0,
    }
    count, body = 60, os.urandom(512 * 1024)
    half_cache, room = 16 << 20, 20 << 20
    with standalone(small_disk / "data", storage=storage) as server:
        producer = connect(server.pulsar_url).create_producer(topic, batching_enabled=False)
        for number in range(count):
            producer.send(b"%d " % number + body)
        logs = small_disk / "data/bookie/ledgers/current"
        rest = half_cache + (1 << 20)
        until(lambda: sum(f.stat().st_size for f in logs.glob("*.log")) > count * len(body) - rest)
        server.kill()
        for log in logs.glob("*.log"):
            os.truncate(log, log.stat().st_size)  # frees what is reserved, as a start does
        with (small_disk / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(small_disk).free - room)
        server.restart()
        assert numbers(connect(server.pulsar_url), topic, count) == list(range(count))


@pytest.fixture(scope="module")
def breaker(tmp_path_factory):
    """A library that breaks the disk of whoever is started with it."""
    return disks.library(tmp_path_factory.mktemp("c"))


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
@pytest.mark.parametrize("where", ["on the disk", "in memory"])
def test_a_sync_that_fails(connect, topic, tmp_path, breaker, monkeypatch, where):
    """The process ends at once; what it had acknowledged before is there. Where memory is the disk
    the kernel does not write the journal by itself, so a thread does.
    """
    mark = tmp_path / "broken"
    monkeypatch.setenv("LD_PRELOAD", str(breaker))
    monkeypatch.setenv("BROKEN_DISK", str(mark))
    with ExitStack() as stack:
        folder = tmp_path
        if where == "in memory":
            if not os.path.isdir("/dev/shm"):
                pytest.skip("this system has no /dev/shm")
            folder = Path(stack.enter_context(TemporaryDirectory(dir="/dev/shm")))
        server = stack.enter_context(standalone(folder / "data"))
        client = connect(server.pulsar_url, operation_timeout_seconds=3)
        client.subscribe(topic, "s").close()
        producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=3_000)
        for number in range(20):
            producer.send(b"%d" % number)
        mark.touch()
        with pytest.raises(pulsar.PulsarException):
            producer.send(b"20")
        client.shutdown()
        assert server.wait() == 1
        assert "storage failed, this server stops" in server.logs()
        mark.unlink()
        server.start()
        assert numbers(connect(server.pulsar_url), topic, 20) == list(range(20))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux sets limits of other processes")
def test_failed(connect, topic):
    """The first write that fails ends the process; none that it acknowledged is lost by that."""
    with standalone() as server:
        client = connect(server.pulsar_url, operation_timeout_seconds=3)
        client.subscribe(topic, "s").close()
        client.create_producer(topic).send(b"0")
        before = len(server.logs())
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1024 * 1024, hard))
        acknowledged = publish_until(client, topic, pulsar.PulsarException)
        client.shutdown()
        assert server.wait() == 1
        said = server.logs()[before:]
        assert "storage failed, this server stops" in said
        server.start()
        assert numbers(connect(server.pulsar_url), topic, 1 + acknowledged)[1:] == list(
            range(acknowledged)
        )
