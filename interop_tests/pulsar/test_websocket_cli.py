"""Apache's own client of the WebSocket API: `pulsar-client` with a URL of `ws://`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pulsar
import pytest

import magnetar
from interop_tests.keys import rsa_files
from interop_tests.pulsar.test_admin_cli import jars
from interop_tests.pulsar.test_client_tools import Run, pulsar_client

__all__ = ["jars"]

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def running() -> Iterator[magnetar.Standalone]:
    with magnetar.standalone() as server:
        yield server


@pytest.fixture
def run(jars: Path, tmp_path: Path, running: magnetar.Standalone) -> Run:
    """Runs a command that succeeds; returns what it prints."""
    url = running.http_url.replace("http://", "ws://")
    return pulsar_client(jars, tmp_path, running.http_url, url)


def documents(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def test_produce_consume_and_read(run: Run, running: magnetar.Standalone) -> None:
    topic = "persistent://public/default/cli"
    url = f"{running.http_url}/admin/v2/persistent/public/default/cli"
    assert httpx.put(url).status_code == 204
    earliest = {"ledgerId": -1, "entryId": -1}
    assert httpx.put(f"{url}/subscription/s", json=earliest).status_code == 204
    run("produce", topic, "-m", "hello,world", "-n", "2", "-k", "key")
    taken = documents(run("consume", topic, "-s", "s", "-n", "4"))
    assert [one["payload"] for one in taken] == ["aGVsbG8=", "d29ybGQ="] * 2
    stats = httpx.get(f"{url}/stats").json()
    assert (stats["msgInCounter"], stats["subscriptions"]["s"]["msgBacklog"]) == (4, 0)
    assert len(documents(run("read", topic, "-n", "2", "-m", "earliest"))) == 2


def test_what_it_encrypts_is_decrypted_by_its_owner(
    run: Run, running: magnetar.Standalone, tmp_path: Path
) -> None:
    public, private = rsa_files(tmp_path)
    topic = "persistent://public/default/secret"
    client = pulsar.Client(running.pulsar_url)
    consumer = client.subscribe(
        topic, "s", crypto_key_reader=pulsar.CryptoKeyReader(public, private)
    )
    key = ("-ekn", "mine", "-ekv", f"file://{public}")
    run("produce", topic, "-m", "secret", *key)
    message = consumer.receive(10_000)
    assert message.data() == b"secret"
    client.close()
