"""`magnetar config init --secure`: what it prints is done as it stands, by stock clients."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pulsar
import pytest

from interop_tests import maven
from interop_tests.kafka.console import TOOLS, Console
from interop_tests.waiting import until
from magnetar.child import HeldPorts

from .test_pulsar_java import ADMIN, COMMAND_SECONDS, MAIN

PORTS = ("6651", "9093", "8883", "8084", "8443")
SECONDS = 30
BIN = str(Path(sys.executable).parent)
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


class Team:
    """A folder made by the command, what it has printed, and the server that it says to start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shown = shell(f"magnetar config init --secure {folder}")
        self.held = HeldPorts(PORTS)
        free = {port: str(number) for port, number in self.held.numbers.items()}
        for file in ("magnetar.toml", "pulsar.conf", "kafka.properties"):
            path = folder / file
            path.write_text(moved(path.read_text(), free))
        self.text = moved(shown, free)
        self.ports = free
        self.blocks = blocks(self.text)
        (start,) = self.blocks[0]
        self.process = subprocess.Popen(
            start.split(), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.log = ""
        for line in self.process.stderr:
            self.log += line
            if line.rstrip().endswith("ready"):
                break
        else:
            pytest.fail("the server did not start")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=SECONDS)
        self.held.release()
        assert self.process.returncode == 0


def moved(text: str, ports: dict[str, str]) -> str:
    """With other ports: those of the text may be in use."""
    return re.sub(r"\b(?:" + "|".join(ports) + r")\b", lambda found: ports[found[0]], text)


def blocks(text: str) -> list[list[str]]:
    """The commands of each indented paragraph; a backslash continues a line."""
    found = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("  "):
            joined = paragraph.replace("\\\n", "")
            found.append([line.strip() for line in joined.splitlines()])
    return found


def shell(command: str) -> str:
    done = subprocess.run(
        ["sh", "-c", command], env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    made = Team(tmp_path_factory.mktemp("start") / "team")
    yield made
    made.stop()


def curl(commands: Sequence[str]) -> list[str]:
    return [shell(f"{each} -sS --fail-with-body") for each in commands if each.startswith("curl")]


def test_only_the_owner_reads_the_files(team: Team) -> None:
    assert stat.S_IMODE(team.folder.stat().st_mode) == 0o700
    files = [path for path in team.folder.iterdir() if path.is_file()]
    assert len(files) > 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_its_commands_work(team: Team) -> None:
    assert curl(team.blocks[1]) == ['["public","pulsar"]'] * 2, "by certificate and by token"
    issue, grant, publish = team.blocks[2]
    assert "for the role alice" in shell(issue)
    curl([grant])
    assert shutil.which("mosquitto_pub"), "these tests need mosquitto-clients, a package of Debian"
    shell(publish)


def test_pulsar_with_the_certificate_of_alice(team: Team, connect: object, topic: str) -> None:
    folder = team.folder
    issue, grant, _ = team.blocks[2]
    shell(issue)
    curl([grant])
    alice = pulsar.AuthenticationTLS(str(folder / "alice.pem"), str(folder / "alice.key"))
    client = pulsar.Client(
        f"pulsar+ssl://localhost:{team.ports['6651']}",
        authentication=alice,
        tls_trust_certs_file_path=str(folder / "ca.pem"),
        tls_validate_hostname=True,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    client.create_producer(topic).send(b"x")
    client.close()


def test_renewing(team: Team) -> None:
    """The server takes the new certificate without a restart."""
    host = ("localhost", int(team.ports["8443"]))
    before = shown_at(host)
    (renew,) = team.blocks[3]
    shell(renew)
    until(lambda: shown_at(host) != before)
    assert curl(team.blocks[1]) == ['["public","pulsar"]'] * 2


def shown_at(address: tuple[str, int]) -> str:
    import ssl

    return ssl.get_server_certificate(address)


def test_nothing_is_overwritten(team: Team) -> None:
    before = {path.name: path.read_bytes() for path in team.folder.iterdir() if path.is_file()}
    done = subprocess.run(
        [f"{BIN}/magnetar", "config", "init", "--secure", str(team.folder)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "holds something already" in done.stderr
    after = {path.name: path.read_bytes() for path in team.folder.iterdir() if path.is_file()}
    assert after == before


def test_no_plain_port_is_open(team: Team) -> None:
    """And a server's certificate is no client's."""
    listening = set(re.findall(r" listens on 127\.0\.0\.1:(\d+)", team.log))
    assert listening == set(team.ports.values())
    with pytest.raises(AssertionError, match="alert"):
        curl([team.blocks[1][0].replace("admin.", "server.")])


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_tools_of_pulsar_and_kafka(team: Team, topic: str) -> None:
    assert f"PULSAR_CLIENT_CONF={team.folder}/pulsar.conf" in team.text
    jars = maven.build(ADMIN) / "jars"
    java = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", MAIN)
    done = subprocess.run(
        [*java, str(team.folder / "pulsar.conf"), "tenants", "list"],
        capture_output=True, text=True, timeout=COMMAND_SECONDS,
    )  # fmt: skip
    assert "public" in done.stdout, done.stderr
    console = Console(f"localhost:{team.ports['9093']}")
    admin = ("--command-config", str(team.folder / "kafka.properties"))
    console.run(f"{TOOLS}.TopicCommand", *admin, "--create", "--topic", topic)
    assert topic in console.run(f"{TOOLS}.TopicCommand", *admin, "--list")
