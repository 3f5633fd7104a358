"""Writes what Confluent's library says of the schemas of two tables, each compared with each.

    python interop_tests/kafka/java/verdict_tables.py CLASSPATH

CLASSPATH has `kafka-json-schema-provider`, `kafka-protobuf-provider` and what they need, of which
Maven's central repository has none: they are in Confluent's own, or built from their source. So the
verdicts are kept beside the tables (`verdicts.txt`), and the tests compare ours with them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from magnetar.core.schema.json_schema.tests import table as json_table
from magnetar.core.schema.protobuf.tests import table as protobuf_table

PROGRAM = Path(__file__).with_name("verdicts") / "Verdicts.java"
Schema = tuple[str, Mapping[str, str]]
"""A text, and the files that it imports."""


def write(language: str, schemas: Sequence[Schema], table: Any, classpath: str) -> None:
    pairs = "\n".join(json.dumps([old, new]) for old in schemas for new in schemas)
    command = ["java", "-Xss8m", "-cp", classpath, str(PROGRAM), language]
    done = subprocess.run(command, input=pairs, stdout=subprocess.PIPE, text=True, check=True)
    said = "".join(done.stdout.split())
    width = len(schemas)
    assert len(said) == width**2, done.stdout[-500:]
    rows = [said[at : at + width] for at in range(0, len(said), width)]
    Path(table.__file__).with_name("verdicts.txt").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    (given,) = sys.argv[1:]
    in_json: list[Schema] = [(json.dumps(each), {}) for each in json_table.SCHEMAS]
    write("JSON", in_json, json_table, given)
    write("PROTOBUF", protobuf_table.SCHEMAS, protobuf_table, given)
