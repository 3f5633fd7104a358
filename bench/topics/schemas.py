#!/usr/bin/env python3
"""What a schema costs on the path of a message: `python -m bench.topics.schemas`.

The generator publishes to two topics of one server: one has an AVRO schema, and each entry says
which version it was written with; the other has none. Short rounds alternate between the two, and
each pair begins with the other one, so that what else the machine does falls on both. CPU is user
and system time of all the server's threads, a message; a pair gives one ratio, and the median of
the ratios is the figure, beside their quartiles and the extremes.

`--control` measures the noise: neither topic has a schema, so the ratio should be 1. With
`--same-size` the messages without a schema are longer by the bytes that a version takes, so that
both topics store as many.

Invariant: a round counts only if every message was acknowledged, and the topic has a schema if it
should.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

import httpx

from bench.drive import generator
from bench.drive.pairs import row
from magnetar import Standalone, standalone

SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "number", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "article", "type": ["null", "string"], "default": None},
        ],
    }
)
BYTES: Final = 100
"""Of a payload."""
VERSION_BYTES: Final = 11
"""Of `schema_version` in the metadata of an entry."""
SHAPES: Final = {
    "one by one": (["--depth", "1000"], 1_500_000),
    "batches of 1000": (["--depth", "20", "--batch", "1000"], 15_000_000),
}
"""The generator's arguments, and the messages of a round."""


def one_round(server: Standalone, topic: str, arguments: list[str]) -> float:
    """Publish; microseconds of the server's CPU a message."""
    port = int(server.pulsar_url.rpartition(":")[2])
    asked = ["--mode", "publish", "--topic", topic, "--stall", "60", *arguments]
    line = generator.run(generator.PULSARLOAD, port, asked, server.pid)
    if not line.ok:
        raise generator.GeneratorError(f"a round of {topic} failed: {line.trouble}")
    path = f"/admin/v2/schemas/public/default/{topic}/schema"
    if (httpx.get(server.http_url + path).status_code == 200) is not ("--schema" in arguments):
        raise generator.GeneratorError(f"a round of {topic} had another schema than it should")
    return line.server_us_per_msg


def pairs(
    server: Standalone, shape: str, rounds: int, sides: tuple[list[str], list[str]]
) -> list[tuple[float, float]]:
    """The CPU without and with, by pairs, after one that warms up. `sides` has the arguments of
    each.
    """
    arguments, messages = SHAPES[shape]
    arguments = [*arguments, "--messages", str(messages)]
    found = []
    for number in range(rounds + 1):
        spent = [0.0, 0.0]
        for which in (0, 1) if number % 2 else (1, 0):
            topic = f"t-{shape.replace(' ', '-')}-{which}-{number}"
            spent[which] = one_round(server, topic, [*arguments, *sides[which]])
        if number:
            found.append((spent[0], spent[1]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=12, help="pairs that count")
    parser.add_argument("--control", action="store_true", help="no schema on either side")
    parser.add_argument("--same-size", action="store_true", help="of what is stored")
    chosen = parser.parse_args()
    generator.build({generator.PULSARLOAD})
    sys.stdout.write(
        "| published | without, us a message | AVRO | ratio | quartiles | all pairs |\n"
        "|---|---|---|---|---|---|\n"
    )
    without = ["--bytes", str(BYTES + (VERSION_BYTES if chosen.same_size else 0))]
    with_one = ["--bytes", str(BYTES), *([] if chosen.control else ["--schema", SCHEMA])]
    with standalone(sync=False) as server:
        for shape in chosen.shape:
            found = pairs(server, shape, chosen.rounds, (without, with_one))
            sys.stdout.write(row(shape, found) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
