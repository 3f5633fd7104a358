#!/usr/bin/env python3
"""Instructions per message, counted by valgrind: for changes that clocks are too noisy to show.

    .venv/bin/python bench/instructions.py                      every load, this checkout
    .venv/bin/python bench/instructions.py --load both k16      some of them
    .venv/bin/python bench/instructions.py --tree ../before     beside another checkout, with ratios
    .venv/bin/python bench/instructions.py --rights             with authorisation, over without
    .venv/bin/python bench/instructions.py --schema             with an AVRO schema, over without

Each load runs twice, short and long; the difference is that of the messages alone, without the
start. Two runs of one tree differ by 1 or 2 %, as a sweep meets more or fewer messages. Time spent
in the kernel, caches and branches is not counted: `run.py` says what they come to. Needs valgrind.

With `--rights` a permission of the namespace lets the load in, by the role of those who do not say
who they are: who somebody is, is found out once a connection, whatever the way. With `--schema`
Pulsar's producers declare one, and each entry says its version.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple

import jwt
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.drive import generator
from bench.drive.server import wait_until_ready
from magnetar.child import FREE_PORTS

ROOT: Final = Path(__file__).resolve().parents[1]
TOTAL: Final = re.compile(r"I\s+refs:\s+([\d,]+)")


class Load(NamedTuple):
    """A load, with few messages and with many."""

    program: str
    listener: str
    arguments: str
    few: int
    many: int


LOADS: Final = {
    "publish": Load("pulsarload", "pulsar", "--mode publish --depth 1000", 5_000, 45_000),
    "both": Load("pulsarload", "pulsar", "--mode both --depth 1000", 5_000, 45_000),
    "batches": Load("pulsarload", "pulsar", "--mode both --batch 1000 --depth 100 --permits 20000",
                    50_000, 1_050_000),
    "connections": Load("pulsarload", "pulsar", "--mode publish --connections 100 --depth 1",
                        2_000, 22_000),
    "depth-1": Load("pulsarload", "pulsar", "--mode publish --depth 1", 200, 2_200),
    "kafka-connections": Load("kafkaraw", "kafka", "--mode publish --connections 100 --depth 1",
                              2_000, 22_000),
    "kafka-16k": Load("kafkaload", "kafka",
                      "--mode publish --bytes 1024 --depth 2000 --batch-bytes 16384",
                      5_000, 65_000),
    "kafka-both": Load("kafkaload", "kafka",
                       "--mode both --bytes 1024 --depth 2000 --batch-bytes 16384",
                       5_000, 65_000),
    "mqtt-connections": Load("mqttload", "mqtt",
                             "--mode publish --qos 1 --connections 100 --depth 1", 2_000, 22_000),
    "mqtt-0": Load("mqttload", "mqtt", "--mode both --qos 0", 5_000, 205_000),
    "mqtt-1": Load("mqttload", "mqtt", "--mode both --qos 1 --depth 20", 2_000, 22_000),
    "mqtt-2": Load("mqttload", "mqtt", "--mode both --qos 2 --depth 20", 2_000, 22_000),
}  # fmt: skip


SECRET: Final = b"a secret of thirty-two bytes....."
GUEST: Final = "guest"
RIGHTS: Final = f"""
[security]
token_secret_key = "data:;base64,{base64.b64encode(SECRET).decode()}"
superusers = ["root"]
anonymous_role = "{GUEST}"
"""


SCHEMA: Final = '{"type":"record","name":"A","fields":[{"name":"a","type":"long"}]}'


class Count(NamedTuple):
    """The counts of one server's run."""

    instructions: int
    messages: int


def total(report: str) -> int:
    """The sum in valgrind's report; `ValueError` without one."""
    match = TOTAL.search(report)
    if match is None:
        raise ValueError(f"valgrind reported no sum:\n{report[-1000:]}")
    return int(match[1].replace(",", ""))


def per_message(few: Count, many: Count) -> float:
    return (many.instructions - few.instructions) / (many.messages - few.messages)


def permit(http: str) -> None:
    """Let the load in, and make its topic: a permission to produce makes none for Kafka."""
    headers = {"Authorization": f"Bearer {jwt.encode({'sub': 'root'}, SECRET)}"}
    connection = HTTPConnection(http)
    access = f"/admin/v2/namespaces/public/default/access/{GUEST}"
    topic = "/admin/v2/persistent/public/default/load"
    for path in (f"{access}/produce", f"{access}/consume", topic):
        connection.request("PUT", path, headers=headers)
        response = connection.getresponse()
        if response.status != 204:
            raise generator.GeneratorError(f"PUT {path}: {response.status}")
        response.read()
    connection.close()


def with_schema(load: Load) -> Load:
    """The same by producers that declare a schema; its definition has no space, as options are
    divided at them.
    """
    return load._replace(arguments=f"{load.arguments} --schema {SCHEMA}")


def count(tree: Path, load: Load, messages: int, *, rights: bool = False) -> Count:
    """One server, one load; the server counts until it has stopped."""
    with tempfile.TemporaryDirectory(prefix="instructions") as folder:
        here = Path(folder)
        ready, log = here / "ready.json", here / "log"
        command = [
            "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
            str(tree / ".venv/bin/python"), "-m", "magnetar", "standalone",
            "--data-dir", str(here / "data"), "--ready-file", str(ready),
            *FREE_PORTS,
            *(["--config", str(here / "rights.toml")] if rights else []),
        ]  # fmt: skip
        (here / "rights.toml").write_text(RIGHTS)
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        with log.open("w", encoding="utf-8") as out:
            child = subprocess.Popen(command, cwd=tree, stdout=out, stderr=out, env=environment)
        try:
            wait_until_ready(child, ready.exists, log, 0.1)
            listeners = msgspec.json.decode(ready.read_bytes(), type=dict[str, object])
            if rights:
                permit(str(listeners["http"]))
            arguments = [*load.arguments.split(), "--topic", "load", "--stall", "120"]
            line = generator.run(
                load.program,
                int(str(listeners[load.listener]).rpartition(":")[2]),
                [*arguments, "--messages", str(messages)],
            )
            if not line.ok:
                raise generator.GeneratorError(f"the load failed: {line.trouble}")
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait()
        return Count(total(log.read_text(errors="replace")), messages)


def measure(tree: Path, load: Load, *, rights: bool = False) -> float:
    few = count(tree, load, load.few, rights=rights)
    return per_message(few, count(tree, load, load.many, rights=rights))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Instructions a message, counted by valgrind.")
    parser.add_argument("--load", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--tree", type=Path, help="another checkout, with a .venv of its own")
    parser.add_argument("--rights", action="store_true", help="with authorisation, over without")
    parser.add_argument("--schema", action="store_true", help="with a schema, over without")
    chosen = parser.parse_args(arguments)
    if chosen.schema and any(LOADS[name].program != "pulsarload" for name in chosen.load):
        parser.error("only Pulsar's loads have schemas")
    if shutil.which("valgrind") is None:
        print("valgrind is needed: apt-get install valgrind", file=sys.stderr)
        return 2
    trees = [ROOT] if chosen.tree is None else [ROOT, chosen.tree.resolve()]
    generator.build({LOADS[name].program for name in chosen.load})
    for tree in trees:  # else each start would compile what changed, and count that
        packages = [
            name for name in ("core", "wire", "bookie", "magnetar") if (tree / name).is_dir()
        ]
        compiling = [tree / ".venv/bin/python", "-m", "compileall", "-q", *packages]
        subprocess.run(compiling, cwd=tree, check=True)
    for name in chosen.load:
        here, *there = [measure(tree, LOADS[name]) for tree in trees]
        beside = f"  there {there[0]:>9,.0f}  ratio {here / there[0]:.3f}" if there else ""
        if chosen.rights:
            asked = measure(ROOT, LOADS[name], rights=True)
            beside += f"  with rights {asked:>9,.0f}  ratio {asked / here:.3f}"
        if chosen.schema:
            declared = measure(ROOT, with_schema(LOADS[name]))
            beside += f"  with a schema {declared:>9,.0f}  ratio {declared / here:.3f}"
        print(f"{name:18} {here:>9,.0f} instructions a message{beside}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
