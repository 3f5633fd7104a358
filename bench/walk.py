#!/usr/bin/env python3
"""The files that one message passes in the server, which a maintainer opens to follow it.

    .venv/bin/python bench/walk.py          a Kafka producer's message to a Pulsar consumer

A server runs under a profiler that notes which of our functions are called. Messages are sent until
nothing is done for the first time any more; then the server is left alone for some seconds, and one
more message is sent and received. What ran for that one and not while the server was idle is
printed, in the order of the first call, with the functions.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.drive.process import pause

ROOT: Final = Path(__file__).resolve().parents[1]
WARM_UP: Final = 20
IDLE_SECONDS: Final = 6.0
PATIENCE_SECONDS: Final = 60.0


class Trace:
    """Runs in the server: the functions called since the last mark, one line of JSON a mark."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._called: dict[str, None] = {}

    def note(self, frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{ROOT}/magnetar/"):
            name = code.co_filename.removeprefix(f"{ROOT}/magnetar/")
            top = "" if name.split("/")[0] in ("core", "wire", "bookie") else "magnetar/"
            self._called[f"{top}{name} {code.co_name}"] = None

    def mark(self, *_: Any) -> None:
        called, self._called = self._called, {}
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(list(called)) + "\n")


def serve(folder: Path) -> None:
    """A server with all of its ports chosen by the system, and a trace."""
    from magnetar.core.native.sources import prefer_sources

    prefer_sources("a profiler looks")  # it does not see compiled functions
    from magnetar.cli import main

    trace = Trace(folder / "trace")
    signal.signal(signal.SIGUSR1, trace.mark)
    sys.setprofile(trace.note)
    ports = [f"--{name}-port=0" for name in ("pulsar", "kafka", "mqtt", "mqtt-ws", "http")]
    data, ready = folder / "data", folder / "ready"
    sys.argv = ["magnetar", "standalone", f"--data-dir={data}", f"--ready-file={ready}", *ports]
    main()


class TracedServer:
    """Its process, and the marks of its trace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marks = 0
        command = [sys.executable, __file__, "--serve", str(folder)]
        with (folder / "log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, cwd=folder, stderr=log)
        self.addresses: dict[str, str] = json.loads(self._read(folder / "ready", 1)[0])

    def called(self) -> list[str]:
        """The functions called since the last call of this one."""
        self._process.send_signal(signal.SIGUSR1)
        self._marks += 1
        found: list[str] = json.loads(self._read(self._folder / "trace", self._marks)[-1])
        return found

    def _read(self, path: Path, lines: int) -> list[str]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if text.count("\n") >= lines or (lines == 1 and text.endswith("}")):
                return text.splitlines()
            pause(0.02)
        raise RuntimeError(f"the server did not answer; see {self._folder}/log")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)


def walked(idle_seconds: float = IDLE_SECONDS) -> dict[str, list[str]]:
    """The functions of each file, of a Kafka producer's message on its way to a Pulsar consumer.

    Without an idle time, what runs by the clock is among them.
    """
    import confluent_kafka
    import pulsar

    with tempfile.TemporaryDirectory() as folder:
        server = TracedServer(Path(folder))
        try:
            url = f"pulsar://{server.addresses['pulsar']}"
            client = pulsar.Client(
                url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, f"{folder}/client")
            )
            consumer = client.subscribe("walk", "mine")
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": server.addresses["kafka"], "linger.ms": 0}
            )

            def send(number: int) -> pulsar.Message:
                producer.produce("walk", b"%d" % number)
                producer.flush()
                return consumer.receive(int(PATIENCE_SECONDS * 1000))

            for number in range(WARM_UP):
                consumer.acknowledge(send(number))
            pause(idle_seconds / 2)
            server.called()
            pause(idle_seconds)
            idle = set(server.called()) if idle_seconds else set()
            send(WARM_UP)
            files: dict[str, list[str]] = {}
            for line in server.called():
                if line not in idle:
                    file, function = line.split()
                    files.setdefault(file, []).append(function)
            client.close()
            return files
        finally:
            server.stop()


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
        return
    files = walked()
    for file, functions in files.items():
        print(f"{file:48} {', '.join(dict.fromkeys(functions))}")
    print(f"{len(files)} files")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
