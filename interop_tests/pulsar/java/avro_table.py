"""A table of Avro schemas, each of which is compared with every other.

They are small, and differ from one another in one thing: types, promotions, unions and the order
of their branches, defaults of every kind, names with and without namespaces, aliases, symbols,
sizes, types that contain themselves or are named before they are defined.
"""

import json
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def enum(name: str, *symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def values(kind: Any) -> dict[str, Any]:
    return {"type": "map", "values": kind}


X = field("x", "int")
POINT = record("Point", X, field("y", "int", default=0))

SCHEMAS: list[Any] = [
    *PRIMITIVES,
    {"type": "int", "logicalType": "date"},
    {"type": "string", "avro.java.string": "String"},
    # what is in something
    *(array(kind) for kind in ("int", "long", "string", ["null", "int"])),
    *(values(kind) for kind in ("int", "double", "bytes", ["int", "null"])),
    array(array("int")),
    array(values("long")),
    # unions
    [],
    ["null"],
    ["int"],
    ["null", "int"],
    ["int", "null"],
    ["null", "long"],
    ["null", "string"],
    ["double", "long"],
    ["string", "bytes"],
    ["null", "int", "string"],
    ["null", array("int"), values("int")],
    # enums
    enum("E", "A", "B"),
    enum("E", "B", "A"),
    enum("E", "A"),
    enum("E", "A", default="A"),
    enum("E", "A", "B", "C", default="C"),
    enum("a.E", "A", "B"),
    enum("b.E", "A", "B"),
    enum("D", "A", "B"),
    enum("D", "A", "B", aliases=["E"]),
    enum("D", "A", "B", aliases=["a.E"]),
    # fixed
    fixed("F", 4),
    fixed("F", 8),
    fixed("a.F", 4),
    fixed("G", 4),
    fixed("G", 4, aliases=["F"]),
    # records
    record("R"),
    record("R", X),
    record("a.R", X),
    record("b.R", X),
    record("Q", X),
    record("Q", X, aliases=["R"]),
    record("Q", X, aliases=["a.R"], namespace="a"),
    record("R", X, doc="about"),
    record("R", X, more=1),
    record("R", field("x", "long")),
    record("R", field("x", "string")),
    record("R", field("x", ["null", "int"])),
    record("R", field("x", ["null", "int"], default=None)),
    record("R", field("x", ["int", "null"], default=1)),
    record("R", field("x", "int", default=1)),
    record("R", field("x", "int", default="1")),
    record("R", field("x", "int", order="descending")),
    record("R", field("y", "int")),
    record("R", field("y", "int", default=2)),
    record("R", field("y", "int", aliases=["x"])),
    record("R", field("y", "long", aliases=["x"], default=2)),
    record("R", field("z", "int", aliases=["x", "y"])),
    record("R", X, field("y", "int")),
    record("R", field("y", "int"), X),
    record("R", X, field("y", "string", default="a")),
    record("R", X, field("y", "boolean", default=True)),
    record("R", X, field("y", "boolean", default="true")),
    record("R", X, field("y", "null", default=None)),
    record("R", X, field("y", "bytes", default="ab")),
    record("R", X, field("y", fixed("F", 2), default="ab")),
    record("R", X, field("y", "double", default=1)),
    record("R", X, field("y", enum("E", "A", "B"), default="B")),
    record("R", X, field("y", enum("E", "A", default="A"))),
    record("R", X, field("y", array("int"), default=[])),
    record("R", X, field("y", array("int"), default=["a"])),
    record("R", X, field("y", values("int"), default={"a": 1})),
    record("R", X, field("y", values("int"), default={"a": "b"})),
    record("R", X, field("y", ["null", "string"], default=None)),
    record("R", X, field("y", ["string", "null"], default="a")),
    record("R", X, field("y", ["null", "string"], default="a")),
    record("R", X, field("y", ["null", "string"], default=1)),
    record("R", X, field("y", POINT, default={"x": 1})),
    record("R", X, field("y", POINT, default={"y": 1})),
    record("R", field("y", POINT)),
    record("R", field("y", record("Point", X))),
    record("R", field("y", record("Place", X))),
    record("R", field("y", record("Point", field("x", "string")))),
    # records in unions
    ["null", record("R", X)],
    ["null", record("a.R", X)],
    ["null", record("Q", X)],
    [record("Q", field("y", "int")), record("P", X)],
    [record("P", field("x", "long")), record("Q", X)],
    [record("R", field("z", "int")), record("Q", X)],
    [record("P", field("x", record("In", field("deep", "string")))), "null"],
    [record("P", field("x", record("In", field("deep", "int")))), "null"],
    ["null", enum("E", "A", "B")],
    ["null", enum("a.E", "A", "B")],
    ["null", fixed("F", 4)],
    ["null", fixed("a.F", 4)],
    ["null", array(record("R", X))],
    ["null", array(record("a.R", X))],
    # types that contain themselves, or come later
    record("L", field("next", ["null", "L"])),
    record("L", field("next", ["null", "L"], default=None), X),
    record("L", field("next", ["null", "L"], default=None), field("x", "long")),
    record("L", field("next", ["null", "L"], default=None), field("x", "string")),
    record("M", field("next", ["null", "M"])),
    record("L", field("next", ["L", "null"])),
    record("T", field("children", array("T"))),
    record("T", field("children", values("T"))),
    record("R", field("a", "Later"), field("b", fixed("Later", 3))),
    record("R", field("a", ["null", "Later"]), field("b", record("Later", X))),
    # names and namespaces
    record("R", field("a", enum("E", "A")), field("b", "E"), namespace="n"),
    record("n.R", field("a", enum("E", "A")), field("b", "n.E")),
    record("R", field("a", enum("m.E", "A")), field("b", "m.E"), namespace="n"),
    record("R", field("a", record("In", X, aliases=["Old"])), aliases=["S"]),
    record("S", field("a", record("Old", X))),
    record("S", field("a", record("Old", field("w", "int")))),
    record("R", field("a", record("In", field("x", "int", aliases=["w"]), aliases=["Old"]))),
]
"""No two of them are the same text."""


def texts() -> list[str]:
    return [json.dumps(each) for each in SCHEMAS]


def pairs() -> list[list[str]]:
    """Each as the writer's with each as the reader's."""
    found = texts()
    assert len(set(found)) == len(found)
    return [[writer, reader] for writer in found for reader in found]
