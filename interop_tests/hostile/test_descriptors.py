"""A server that may open few files, all of which its first clients take."""

import json
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from interop_tests.waiting import until
from magnetar.child import FREE_PORTS

FILES = 64
LATER_SECONDS = 20


@contextmanager
def frugal(folder: Path, files: int) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    """A cold server: nothing is imported that its first clients would have imported."""
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "magnetar", "standalone", "--data-dir", str(folder / "data")]
    command += ["--ready-file", str(ready), *FREE_PORTS]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stderr=log,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        )
    try:
        until(lambda: ready.exists() or process.poll() is not None)
        assert ready.exists(), (folder / "log").read_text()
        yield process, json.loads(ready.read_text())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def connected(where: str) -> socket.socket:
    host, _, port = where.rpartition(":")
    return socket.create_connection((host, int(port)), 5)


@pytest.mark.parametrize("protocol", ["pulsar", "kafka", "http"])
def test_the_first_of_a_kind_comes_when_no_file_is_left(tmp_path, protocol):
    """It loads what it needs to be served, or waits: that ended the server."""
    with frugal(tmp_path, FILES) as (process, where), ExitStack() as stack:
        for _ in range(2 * FILES):
            stack.enter_context(connected(where[protocol]))
        for other in ("kafka", "pulsar", "http"):
            stack.enter_context(connected(where[other])).sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        stack.close()
        deadline = time.monotonic() + LATER_SECONDS
        while True:
            try:
                answer = httpx.get(f"http://{where['http']}/healthz", timeout=5)
                break
            except httpx.TransportError:
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < deadline
        assert answer.text == "ok"
        assert "Traceback" not in (tmp_path / "log").read_text()
    assert process.returncode == 0
