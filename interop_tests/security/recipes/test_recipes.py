"""The recipes of docs/security.md, as they are written there: their files, and their commands by a
shell.

What is replaced: addresses, secrets and the issuer of the example by those of the test; and a
password is read from the standard input, since there is no terminal to ask at.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interop_tests import maven
from interop_tests.kafka.java.driver import command
from interop_tests.security.oauth.conftest import accepted
from interop_tests.security.oauth.issuer import RegisteredClient, issuing
from magnetar import Standalone, standalone

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
ADMIN = Path(__file__).resolve().parents[2] / "pulsar" / "admin"
EXAMPLE = "https://issuer.example.com"
ASKING = re.compile(r"^magnetar user add \S+ (\w+)$", re.MULTILINE)
KAFKA_TOOLS = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
PULSAR_ADMIN = "org.apache.pulsar.admin.cli.PulsarAdminTool"
GRANTED = "allowed: the permission produce of namespace public/default"
SHELL_SECONDS = 120


def blocks(heading: str) -> list[tuple[str, str]]:
    """The blocks of a section with their languages; commands have none."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```(\w*)\n(.*?)```", section, re.DOTALL)


def tool(folder: Path, name: str, *words: str) -> None:
    """A program in the shell's way, as an installation has it."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o700)


def typed(folder: Path, commands: str, **more: str) -> str:
    """What the shell prints."""
    commands = ASKING.sub(r"echo \1-secret | \g<0> --password-stdin", commands)
    way = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": way, **more},
        capture_output=True,
        text=True,
        timeout=SHELL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def at(server: Standalone, text: str) -> str:
    """What is said of the server's own addresses, for the one of the test."""
    for example, real in {
        "localhost:9092": server.bootstrap_servers,
        "http://localhost:8080": server.http_url,
        "pulsar://localhost:6650": server.pulsar_url,
    }.items():
        text = text.replace(example, real)
    return text


@contextmanager
def serving(tables: Mapping[str, dict[str, Any]]) -> Iterator[Standalone]:
    """A server with the settings of a recipe, on loopback and free ports."""
    settings = {section: values for section, values in tables.items() if section != "listen"}
    with standalone(**settings) as server:
        yield server


def pulsar_admin(folder: Path) -> None:
    jars = maven.build(ADMIN) / "jars"
    (folder / "client.conf").touch()
    words = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*")
    tool(
        folder, "pulsar-admin", *words, "org.apache.pulsar.admin.cli.PulsarAdminTool", "client.conf"
    )


def test_passwords_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pulsar_admin(tmp_path)
    (_, made), (_, toml), (_, granted), (_, by_pulsar) = blocks("The same with passwords, by hand")
    typed(tmp_path, made)
    with serving(tomllib.loads(toml)) as server:
        url = server.http_url
        shown = typed(tmp_path, at(server, granted), MAGNETAR_URL=url)
        assert GRANTED in shown
        typed(tmp_path, at(server, by_pulsar))
        checked = granted.splitlines()[-1].replace("produce orders", "consume orders")
        assert "allowed: the permission consume" in typed(tmp_path, checked, MAGNETAR_URL=url)


def test_kafka_with_scram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, main in KAFKA_TOOLS.items():
        tool(tmp_path, name, *command(main, heap="128m"))
    (made, toml, root, allowed, alice, used) = [text for _, text in blocks("Kafka with SCRAM")]
    typed(tmp_path, made)
    (tmp_path / "root.properties").write_text(root)
    (tmp_path / "alice.properties").write_text(alice)
    with serving(tomllib.loads(toml)) as server:
        typed(tmp_path, at(server, allowed))
        assert "hello" in typed(tmp_path, at(server, used)).splitlines()


@pytest.mark.node
def test_pulsar_with_oauth2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pulsar_admin(tmp_path)
    (_, toml), (_, known), (_, granted), (_, python) = blocks("Pulsar with OAuth2")
    with issuing(tmp_path, RegisteredClient("root"), RegisteredClient("alice")) as issuer:
        for name in ("alice", "root"):
            told = json.loads(known.replace("alice", name).replace(EXAMPLE, issuer.url))
            told["client_secret"] = RegisteredClient(name).secret
            (tmp_path / f"{name}.json").write_text(json.dumps(told))
        with serving(tomllib.loads(toml.replace(EXAMPLE, issuer.url))) as server:
            accepted(server, issuer.token("root"))
            typed(tmp_path, at(server, granted).replace(EXAMPLE, issuer.url))
            (tmp_path / "orders.py").write_text(at(server, python).replace(EXAMPLE, issuer.url))
            assert "b'hello'" in typed(tmp_path, "python orders.py").splitlines()
