"""Values of one version of a schema as those of another: fastavro is the judge."""

import datetime
import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.values.arrays import column_of
from magnetar.spark_connector.values.avro_decoder import decoder_of, field_of
from magnetar.spark_connector.values.avro_evolution import conversion, same
from magnetar.spark_connector.values.avro_schema import arrow_type, parse
from magnetar.spark_connector.values.misfit import Misfit

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
COLOURS = {"type": "enum", "name": "C", "symbols": ["RED", "GREEN"]}


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def judged(writer: Any, reader: Any, data: bytes) -> Any:
    return schemaless_reader(io.BytesIO(data), parse_schema(writer), parse_schema(reader))


def read(writer: Any, reader: Any, data: bytes) -> Any:
    old, new = parse(json.dumps(writer)), parse(json.dumps(reader))
    convert = conversion(old, new)
    column = column_of(arrow_type(new), field_of)([convert(decoder_of(old)(data))])
    column.validate(full=True)
    return column.to_pylist()[0]


def shown(value: Any) -> Any:
    """Maps as Arrow shows them."""
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, list) else value


A = field("a", "int")
PAIRS = [
    (record(A), record(field("b", "string", default="x"), A), {"a": 1}),
    (record(A, field("b", "string")), record(A), {"a": 1, "b": "gone"}),
    (record(A, field("b", "string")), record(field("b", "string"), A), {"a": 1, "b": "moved"}),
    (record(A), record(field("z", "int", aliases=["a"])), {"a": 7}),
    (record(A), record(field("a", "long")), {"a": 7}),
    (record(A), record(field("a", "double")), {"a": 7}),
    (record(field("a", "float")), record(field("a", "double")), {"a": 0.5}),
    (record(field("a", "string")), record(field("a", "bytes")), {"a": "xyz"}),
    (record(field("a", "bytes")), record(field("a", "string")), {"a": b"xyz"}),
    (record(A), record(field("a", ["null", "int"], default=None)), {"a": 7}),
    (record(A), record(field("a", ["null", "long"], default=None)), {"a": 7}),
    (record(field("a", ["null", "int"])), record(field("a", ["null", "long"])), {"a": None}),
    (record(field("a", ["null", "int"])), record(field("a", ["null", "long"])), {"a": 5}),
    (record(field("a", ["null", "int"])), record(field("a", "int")), {"a": 5}),
    (record(A), record(A, field("b", ["null", "int"], default=None)), {"a": 1}),
    (record(A), record(A, field("b", ["int", "null"], default=3)), {"a": 1}),
    (record(A), record(A, field("b", {"type": "array", "items": "long"}, default=[1])), {"a": 1}),
    (record(A), record(A, field("b", "double", default=3)), {"a": 1}),
    (record(A), record(A, field("b", "boolean", default=True)), {"a": 1}),
    (
        record(field("a", {"type": "array", "items": "int"})),
        record(field("a", {"type": "array", "items": "double"})),
        {"a": [1, 2]},
    ),
    (
        record(field("a", COLOURS)),
        record(field("a", COLOURS | {"symbols": ["GREEN", "BLUE"], "default": "BLUE"})),
        {"a": "RED"},
    ),
    (
        record(field("a", COLOURS)),
        record(field("a", COLOURS | {"symbols": ["GREEN", "BLUE"]})),
        {"a": "GREEN"},
    ),
    (
        record(field("r", record(A) | {"name": "In"})),
        record(field("r", record(A, field("b", "int", default=2)) | {"name": "In"})),
        {"r": {"a": 1}},
    ),
]


@pytest.mark.parametrize(("writer", "reader", "value"), PAIRS)
def test_it_reads_what_fastavro_reads(writer: Any, reader: Any, value: Any) -> None:
    data = written(writer, value)
    assert read(writer, reader, data) == shown(judged(writer, reader, data))


@pytest.mark.parametrize(
    ("new", "made"),
    [
        (field("b", "bytes", default="\u00ff"), b"\xff"),
        (field("b", {"type": "map", "values": "int"}, default={"k": 1}), [("k", 1)]),
        (field("b", record(field("c", "int", default=2)) | {"name": "In"}, default={}), {"c": 2}),
        (field("b", {"type": "long", "logicalType": "timestamp-millis"}, default=0), EPOCH),
        (
            field("b", ["string", "int"], default="x"),
            {"member0": "x", "member1": None},
        ),
    ],
)
def test_defaults_that_json_says_otherwise(new: dict[str, Any], made: Any) -> None:
    assert read(record(A), record(A, new), written(record(A), {"a": 1})) == {"a": 1, "b": made}


def test_a_default_that_leaves_something_open_is_told() -> None:
    new = field("b", record(field("c", "int")) | {"name": "In"}, default={})
    with pytest.raises(OptionError, match="leaves out a field"):
        conversion(parse(json.dumps(record(A))), parse(json.dumps(record(A, new))))


def test_maps_become_what_their_items_become() -> None:
    old, new = ({"type": "map", "values": one} for one in ("int", "long"))
    data = written(old, {"k": 3})
    assert dict(read(old, new, data)) == judged(old, new, data) == {"k": 3}


def test_a_branch_has_its_place_among_several() -> None:
    old, new = record(A), record(field("a", ["null", "string", "int"]))
    assert read(old, new, written(old, {"a": 4})) == {"a": {"member0": None, "member1": 4}}
    back = record(field("a", ["null", "string", "int"]))
    assert read(back, new, written(back, {"a": "x"})) == {"a": {"member0": "x", "member1": None}}
    assert read(back, record(field("a", ["null", "int"])), written(back, {"a": 4})) == {"a": 4}


def test_a_record_keeps_its_name_among_several() -> None:
    first, second = (
        {"type": "record", "name": name, "fields": [A, *more]}
        for name, more in (("n.A", []), ("n.B", [field("x", "int")]))
    )
    third = {"type": "record", "name": "n.C", "fields": [A]}
    old, new = record(field("u", [first, second])), record(field("u", [third, first, second]))
    data = written(old, {"u": ("n.B", {"a": 1, "x": 2})})
    found = read(old, new, data)["u"]
    assert found == {"member0": None, "member1": None, "member2": {"a": 1, "x": 2}}


def test_what_is_alike_costs_nothing() -> None:
    schema = parse(json.dumps(record(A, field("b", ["null", "string"]))))
    assert conversion(schema, schema) is same
    other = parse(json.dumps(record(A, field("b", ["null", "string"], default=None))))
    assert (
        conversion(
            parse(json.dumps(record(A))),
            parse(
                json.dumps(
                    record(
                        A,
                    )
                )
            ),
        )
        is same
    )
    assert other != schema


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (record(A), record(field("a", "string"))),
        (record(field("a", "long")), record(field("a", "int"))),
        (record(A), record(A, field("b", "int"))),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long"),
    ],
)
def test_what_can_never_be_read_is_told(writer: Any, reader: Any) -> None:
    with pytest.raises(OptionError, match="Avro"):
        conversion(parse(json.dumps(writer)), parse(json.dumps(reader)))


@pytest.mark.parametrize(
    ("writer", "reader", "value"),
    [
        (record(field("a", ["null", "int"])), record(A), {"a": None}),
        (record(field("a", ["string", "int"])), record(A), {"a": "x"}),
        (
            record(field("a", COLOURS)),
            record(field("a", COLOURS | {"symbols": ["X"]})),
            {"a": "RED"},
        ),
        (record(field("a", "bytes")), record(field("a", "string")), {"a": b"\xff"}),
    ],
)
def test_values_without_a_place_are_misfits(writer: Any, reader: Any, value: Any) -> None:
    with pytest.raises(Misfit):
        read(writer, reader, written(writer, value))
