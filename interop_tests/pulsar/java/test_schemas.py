"""Schemas with Apache's Java client, and our verdicts beside those of Avro's own judges."""

import pytest

from interop_tests.pulsar.java.avro_table import pairs
from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.compatibility import incompatibility
from magnetar.core.schema.avro.identity import identity_of
from magnetar.core.schema.avro.parser import parse
from magnetar.core.schema.avro.resolution import refusal
from magnetar.spark_connector import options
from magnetar.spark_connector.planning import planner
from magnetar.spark_connector.reading import range_reader
from magnetar.spark_connector.schema import schema_of, with_schema

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]


@pytest.fixture
def play(java, server, topic):
    """Plays one scene on the session's server with a fresh topic."""
    return lambda family, **args: java.play(family, server.pulsar_url, topic, **args)


def verdict(writing: str, reading: str) -> str:
    """What we say of a pair, in the words of the scene."""
    try:
        writer, reader = parse(writing.encode()), parse(reading.encode())
    except IncompatibleSchema:
        return "unreadable"
    try:
        read = "not read" if refusal(writer, reader) else "read"
    except IncompatibleSchema:
        read = "not read"
    try:
        compatible = "incompatible" if incompatibility(writer, reader) else "compatible"
    except IncompatibleSchema:
        compatible = "incompatible"
    same = "same" if identity_of(writer) == identity_of(reader) else "other"
    return f"{read}, {compatible}, {same}"


def test_verdicts(play):
    """More than ten thousand pairs, and the same verdict for each."""
    compared = pairs()
    theirs = play("schemas.verdicts", pairs=compared)
    ours = [verdict(*pair) for pair in compared]
    wrong = [
        (*pair, their, our)
        for pair, their, our in zip(compared, theirs, ours, strict=True)
        if their != our
    ]
    assert not wrong, "\n".join(map(str, [len(wrong), *wrong[:20]]))
    assert len(compared) > 10_000
    assert {each.split(",")[0] for each in ours} == {"read", "not read"}


def test_every_kind(play):
    lamp = "desk 40"
    assert play("schemas.kinds") == {
        "string": "grün at 0",
        "int64": "7 at 0",
        "json": f"{lamp} at 0",
        "avro": f"{lamp} at 0",
        "protobuf": "seconds: 7 at 0",
        "protobuf by Avro": "seconds: 7 at 0",
        "pair": f"k={lamp} at 0",
        "separate": f"7={lamp} at 0",
        "other protobuf": "IncompatibleSchemaException",
        "other kind": "IncompatibleSchemaException",
    }


PRIMITIVES = [
    "BOOLEAN",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "INSTANT",
    "LOCAL_DATE",
    "LOCAL_TIME",
    "LOCAL_DATE_TIME",
]


def test_every_primitive(play):
    """Its value is the same for who expects it, and for who asks the server what it is."""
    assert play("schemas.primitives") == {kind: [True, 0, kind, True] for kind in PRIMITIVES}


def test_pairs_as_spark_reads_them(play, server, topic):
    """Without Spark: its driver's plan, and what a worker makes of it."""
    play("schemas.pairs")
    lamp = {"name": "desk", "watts": 40}
    for kind, key in ("inline", "k"), ("apart", 7):
        assert spark_values(server.http_url, f"{topic}-{kind}") == [
            {"key": key, "value": lamp},
            {"key": None, "value": lamp},
            {"key": key, "value": None},
        ]


def spark_values(url, topic):
    """A topic's values, by its schema."""
    given = {"service.url": url, "topic": topic, "valueFormat": "auto", "readFrom": "gateway"}
    table = options.table_of(given)
    chosen = with_schema(options.parse(given), schema_of(table), table, named=False)
    batches = [one for task in planner.batch(chosen, 1) for one in range_reader.batches(task)]
    return [value for one in batches for value in one.column("value").to_pylist()]


def test_two_versions_and_a_third_that_may_not_be(play):
    """A consumer of any schema reads each message with the version that it was written with."""
    assert play("schemas.evolution") == {
        "seen": ["0 desk [name]", "1 wall [name, colour]"],
        "refused": "IncompatibleSchemaException",
        "reader": "IncompatibleSchemaException",
        "again": "none",
    }


def test_the_schema_that_the_topic_has(play):
    seen = play("schemas.automatic")
    assert seen["first"] == "desk 40"
    assert seen["second"] == "wall 60 at 0"
    assert seen["wrong"] != "none"
    assert seen["refused"] == "IncompatibleSchemaException"
