"""`pulsar-client` and `pulsar-perf` of Apache's distribution.

`pulsar-perf` has its jars from the project of Apache's broker: it is 4.0.8, with the client of that
broker. Its `websocket-producer` does not start with that one's classes, and has its own.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

import magnetar
from interop_tests import maven
from interop_tests.bookkeeper.pulsar_broker import PROJECT
from interop_tests.bookkeeper.zookeeper import LOGGING
from interop_tests.pulsar.test_admin_cli import COMMAND_SECONDS, JAVA, jars

__all__ = ["jars"]

pytestmark = [pytest.mark.java, pytest.mark.slow]

CLIENT: Final = "org.apache.pulsar.client.cli.PulsarClientTool"
OVER_WEBSOCKET: Final = Path(__file__).parent / "perf"
PERF: Final = "org.apache.pulsar.testclient.PulsarPerfTestTool"
RECORD: Final = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
DELIVERED: Final = re.compile(r"content:(.*?)(?:, event-time.*)?$", re.MULTILINE)
"""A message as `consume` and `read` print it."""
Run = Callable[..., str]


@pytest.fixture(scope="module")
def running() -> Iterator[magnetar.Standalone]:
    """It takes a tenth of a megabyte at once."""
    limits = {"broker": {"max_message_size": 100_000}, "kafka": {"message_max_bytes": 100_000}}
    with magnetar.standalone(**limits) as server:
        yield server


def succeeded(command: list[str], directory: Path) -> str:
    """What a command prints; it may leave files in the directory."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_SECONDS, cwd=directory
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def pulsar_client(jars: Path, directory: Path, http_url: str, broker_url: str) -> Run:
    """pulsar-client, which keeps its configuration in the directory."""
    conf = directory / "client.conf"
    conf.write_text(f"webServiceUrl={http_url}/\nbrokerServiceUrl={broker_url}/\n")
    command = [*JAVA, "-cp", f"{jars}/*", CLIENT, str(conf)]
    return lambda *words: succeeded([*command, *words], directory)


@pytest.fixture
def client(jars: Path, tmp_path: Path, running: magnetar.Standalone) -> Run:
    return pulsar_client(jars, tmp_path, running.http_url, running.pulsar_url)


def pulsar_perf(project: Path, directory: Path) -> list[str]:
    """pulsar-perf with the jars of a project."""
    conf, logging = directory / "perf.conf", directory / "info.properties"
    conf.touch()
    logging.write_text(LOGGING.replace("level = warn", "level = info"))
    # its histograms alone take more than half a gigabyte
    java = ["java", "-Xmx1g", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={logging}"]
    return [*java, "-cp", f"{maven.build(project)}/jars/*", PERF, str(conf)]


@pytest.fixture
def perf(tmp_path: Path, running: magnetar.Standalone) -> Run:
    """It reports each second, and at its end."""
    command = pulsar_perf(PROJECT, tmp_path)

    def run(verb: str, *words: str) -> str:
        asked = [verb, *words, "-i", "1", "--service-url", running.pulsar_url]
        return succeeded([*command, *asked], tmp_path)

    return run


def stats(server: magnetar.Standalone, topic: str, which: str = "stats") -> dict[str, Any]:
    found = httpx.get(f"{server.http_url}/admin/v2/persistent/public/default/{topic}/{which}")
    return dict(found.raise_for_status().json())


def test_messages_with_all_that_a_command_line_gives_them(
    client: Run, running: magnetar.Standalone
) -> None:
    """And a consumer of a pattern, which waits for as many as it wants."""
    client("produce", "cli", "-m", "hello,world", "-n", "2", "-k", "key", "-p", "a=b")
    assert stats(running, "cli")["msgInCounter"] == 4
    pattern = "persistent://public/default/cl.*"
    wanted = ("-s", "s", "-p", "Earliest", "-t", "Shared", "-n", "4", "-mp")
    said = client("consume", pattern, "--regex", *wanted)
    assert DELIVERED.findall(said) == ["hello", "world"] * 2
    assert said.count("key:[key], properties:[a=b]") == 4
    assert stats(running, "cli")["subscriptions"]["s"]["msgBacklog"] == 0
    assert DELIVERED.findall(client("read", "cli", "-m", "earliest", "-n", "3")) == [
        "hello", "world", "hello",
    ]  # fmt: skip


def test_a_message_in_chunks(client: Run, running: magnetar.Standalone, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * 150_000)
    client("produce", "chunked", "-c", "-f", str(large))
    assert stats(running, "chunked", "internalStats")["numberOfEntries"] == 2
    said = client("consume", "chunked", "-s", "s", "-p", "Earliest", "-n", "1", "-st", "bytes")
    assert DELIVERED.findall(said) == ["x" * 150_000]


def test_values_with_a_schema(client: Run, running: magnetar.Standalone) -> None:
    client("produce", "values", "-m", '{"a":1}', "-s", "#", "-vs", f"json:{RECORD}")
    stored = httpx.get(f"{running.http_url}/admin/v2/schemas/public/default/values/schema").json()
    assert stored["type"] == "JSON"
    taken = client(
        "consume", "values", "-s", "s", "-p", "Earliest", "-n", "1", "-st", "auto_consume"
    )
    assert DELIVERED.findall(taken) == ["{a=1}"]


def test_a_load_is_produced_consumed_and_read(perf: Run, running: magnetar.Standalone) -> None:
    said = perf("produce", "load", "-m", "2000", "-r", "5000", "-s", "100")
    assert "reached the maximum number: 2000" in said
    assert stats(running, "load")["msgInCounter"] >= 2000
    said = perf("consume", "load", "-m", "2000", "-ss", "s", "-sp", "Earliest")
    assert "2000 records received" in said
    assert "ack failed 0 msg" in said
    assert "2000 records received" in perf("read", "load", "-n", "2000")


@pytest.mark.alone
def test_a_load_over_websocket(tmp_path: Path, running: magnetar.Standalone) -> None:
    """Beside other tests it may send nothing: it waits five seconds for its WebSocket, no more."""
    command = pulsar_perf(OVER_WEBSOCKET, tmp_path)
    proxy = running.http_url.replace("http:", "ws:")
    asked = ["websocket-producer", "--proxy-url", proxy, "-m", "100", "-r", "50", "sockets"]
    assert "100 records sent" in succeeded([*command, *asked], tmp_path)
    assert stats(running, "sockets")["msgInCounter"] == 100


def test_a_load_of_transactions(perf: Run, running: magnetar.Standalone) -> None:
    """Each takes five messages of one topic, and publishes five to another."""
    perf("produce", "from", "-m", "200", "-r", "5000")
    shape = ("-ntxn", "20", "-nmp", "5", "-nmc", "5", "-ss", "s", "-sp", "Earliest")
    topics = ("--topics-c", "from", "--topics-p", "to", "--admin-url", running.http_url)
    said = perf("transaction", *topics, *shape)
    assert "20 transaction open successfully --- 0 transaction open failed" in said
    assert "20 transaction end successfully --- 0 transaction end failed" in said
    assert stats(running, "to")["msgInCounter"] >= 100
    assert stats(running, "to")["committedTxnCount"] == 20
