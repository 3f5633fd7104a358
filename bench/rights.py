#!/usr/bin/env python3
"""What authentication and authorisation cost the server, as a ratio: `python -m bench.rights`.

Two servers of this checkout run side by side. One asks nobody; to the other clients prove
themselves by a token, and a stored permission of the namespace lets them in. Short rounds of the
same load alternate between the two, and each pair begins with the other one, so that what else the
machine does falls on both. CPU is user and system time of all the server's threads, a message, over
the measured messages alone; a pair gives one ratio, and the median of the ratios is the figure,
beside their quartiles and the extremes. Two processes of the same program differ by some per cent
for as long as they live, so both are started anew after every few pairs.

`--control` measures the noise: nobody is asked by either server, so the ratio should be 1.

Invariant: a round counts only if its generator found every message, once and in order.
"""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, Final, NamedTuple

import jwt

from bench.drive import generator
from bench.drive.pairs import row
from magnetar import Standalone, standalone

SECRET: Final = b"a secret of thirty-two bytes....."
ROLE: Final = "load"
ASKING: Final[dict[str, Any]] = {
    "token_secret_key": f"data:;base64,{base64.b64encode(SECRET).decode()}",
    "superusers": ["root"],
}


class Load(NamedTuple):
    """One protocol's load: who publishes and who reads, at full speed."""

    program: str
    arguments: str
    messages: int


LOADS: Final = {
    "pulsar": Load(generator.PULSARLOAD, "--depth 1000", 1_500_000),
    "kafka": Load(generator.KAFKALOAD, "--bytes 1024 --depth 2000 --batch-bytes 16384", 400_000),
    "mqtt-0": Load(generator.MQTTLOAD, "--qos 0", 4_000_000),
    "mqtt-1": Load(generator.MQTTLOAD, "--qos 1 --depth 20", 300_000),
}  # fmt: skip


class Asked(NamedTuple):
    """A running server, and what its clients show."""

    server: Standalone
    token: str | None

    def port(self, program: str) -> int:
        urls = {
            generator.PULSARLOAD: self.server.pulsar_url,
            generator.KAFKALOAD: self.server.bootstrap_servers,
            generator.MQTTLOAD: self.server.mqtt_url,
        }
        return int(urls[program].rpartition(":")[2])


@contextmanager
def open_server() -> Iterator[Asked]:
    """Nobody is asked who they are."""
    with standalone(sync=False) as server:
        yield Asked(server, None)


@contextmanager
def asking_server() -> Iterator[Asked]:
    """A token, and a permission of the namespace."""
    with standalone(sync=False, security=ASKING) as server:
        access = f"/admin/v2/namespaces/public/default/access/{ROLE}"
        ask(server, "PUT", f"{access}/produce", f"{access}/consume")
        yield Asked(server, jwt.encode({"sub": ROLE}, SECRET))


def ask(server: Standalone, method: str, *paths: str) -> None:
    """Have something done as the superuser."""
    connection = HTTPConnection(server.http_url.rpartition("/")[2])
    headers = {"Authorization": f"Bearer {jwt.encode({'sub': 'root'}, SECRET)}"}
    for path in paths:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 204:
            raise generator.GeneratorError(f"{method} {path}: {answer.status} {said!r}")
    connection.close()


def one_round(asked: Asked, load: Load, topic: str, messages: int) -> float:
    """Publish and read; microseconds of the server's CPU a message. A permission to produce
    creates no topic for Kafka's clients, so the topic is there before; MQTT's share one.
    """
    path = f"/admin/v2/persistent/public/default/{topic}"
    has_topic = load.program != generator.MQTTLOAD
    if has_topic:
        ask(asked.server, "PUT", path)
    arguments = ["--mode", "both", *load.arguments.split(), "--topic", topic, "--stall", "60"]
    if asked.token is not None:
        arguments += ["--token", asked.token]
    line = generator.run(
        load.program,
        asked.port(load.program),
        [*arguments, "--messages", str(messages)],
        asked.server.pid,
    )
    if not line.ok:
        raise generator.GeneratorError(f"a round of {topic} failed: {line.trouble}")
    if has_topic:
        ask(asked.server, "DELETE", f"{path}?force=true")
    return line.server_us_per_msg


def pairs(
    servers: tuple[Asked, Asked], name: str, rounds: int, messages: int
) -> list[tuple[float, float]]:
    """The CPU of the one that asks nobody and of the other, by pairs, after one that warms up."""
    found: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        order = (0, 1) if number % 2 else (1, 0)
        spent = [0.0, 0.0]
        for which in order:
            topic = f"{name}-{which}-{number}"
            spent[which] = one_round(servers[which], LOADS[name], topic, messages)
        if number:
            found.append((spent[0], spent[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--load", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--starts", type=int, default=6, help="of both servers")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of each start that count")
    parser.add_argument("--scale", type=float, default=1.0, help="of the messages of a round")
    parser.add_argument("--control", action="store_true", help="neither server asks: the noise")
    chosen = parser.parse_args()
    generator.build({LOADS[name].program for name in chosen.load})
    sys.stdout.write(
        "| load | nobody is asked, us a message | with rights | ratio | quartiles | all pairs |\n"
        "|---|---|---|---|---|---|\n"
    )
    second = open_server if chosen.control else asking_server
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in chosen.load}
    for _ in range(chosen.starts):
        with open_server() as one, second() as other:
            for name, ratios in found.items():
                messages = int(LOADS[name].messages * chosen.scale)
                ratios += pairs((one, other), name, chosen.rounds, messages)
    for name, ratios in found.items():
        sys.stdout.write(row(name, ratios) + "\n")


if __name__ == "__main__":
    main()
