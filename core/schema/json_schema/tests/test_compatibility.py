"""Which schema in JSON Schema may follow which: each pair with the verdict of the rules there."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.json_schema.compatibility import incompatibility
from magnetar.core.schema.json_schema.model import JsonSchemaNode
from magnetar.core.schema.json_schema.reader import read
from magnetar.core.schema.json_schema.tests.table import SCHEMAS as TABLE
from magnetar.core.schema.json_schema.tests.test_reader import SCHEMAS, node

TEXT, NUMBER, WHOLE, NOTHING = ({"type": kind} for kind in ("string", "number", "integer", "null"))


def of(*properties: Any, more: Any = None, **words: Any) -> dict[str, Any]:
    """An object with properties `a`, `b`, ...; `more` is of what is not named."""
    named = dict(zip("abc", properties, strict=False))
    rest = {} if more is None else {"additionalProperties": more}
    return {"type": "object", "properties": named, **rest, **words}


def row(*items: Any, more: Any = None) -> dict[str, Any]:
    rest = {} if more is None else {"additionalItems": more}
    return {"type": "array", "items": list(items), **rest}


TREE = {"$defs": {"n": of({"type": "array", "items": {"$ref": "#/$defs/n"}})}, "$ref": "#/$defs/n"}

WIDER: list[tuple[Any, Any]] = [
    (TEXT, TEXT),
    (TEXT, {}),
    (False, TEXT),
    (TEXT, True),
    (WHOLE, NUMBER),
    (TEXT, {"type": ["string", "null"]}),
    (TEXT, {"anyOf": [NUMBER, TEXT]}),
    (TEXT, {"allOf": [TEXT]}),
    ({"oneOf": [TEXT]}, TEXT),
    ({"oneOf": [TEXT]}, {"oneOf": [NOTHING, TEXT]}),
    ({"oneOf": [TEXT, NOTHING]}, {"anyOf": [NOTHING, TEXT]}),
    ({"allOf": [TEXT, {"maxLength": 3}]}, {"allOf": [TEXT]}),
    ({"maxLength": 3}, {"maxLength": 4}),
    ({"maxLength": 3, "minLength": 2, "pattern": "a"}, {"type": "string"}),
    ({"minimum": 3}, {"minimum": 2}),
    ({"exclusiveMaximum": 3}, {"exclusiveMaximum": 3.5}),
    ({"multipleOf": 4}, {"multipleOf": 2}),
    ({"multipleOf": 0.3}, {"multipleOf": 0.1}),
    ({"enum": ["a"]}, {"enum": ["b", "a"]}),
    ({"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}),
    ({"not": {"type": "string"}}, {"not": {"type": "string", "maxLength": 3}}),
    (of(TEXT), of(TEXT, title="a title")),
    (of(TEXT), of()),
    (of(TEXT, more=False), of(TEXT, NUMBER, more=False)),
    (of(TEXT, more=TEXT), of(TEXT, TEXT, more=TEXT)),
    (of(TEXT), of(TEXT, True)),
    (of(TEXT, required=["a"]), of(TEXT)),
    (of(TEXT), of({**TEXT, "default": ""}, required=["a"])),
    (of(more=False), of({**TEXT, "default": ""}, more=False, required=["a"])),
    (of(more=False), of(more=TEXT)),
    (of(more=TEXT), of()),
    (of(WHOLE, more=False), of(more=NUMBER)),
    (of(maxProperties=3), of(maxProperties=4)),
    (of(TEXT, dependencies={"a": ["b", "c"]}), of(TEXT, dependencies={"a": ["b"]})),
    (of(dependencies={"a": of(WHOLE)}), of(dependencies={"a": of(NUMBER)})),
    (of(patternProperties={"^b": TEXT}, more=False),
     of(TEXT, {}, patternProperties={"^b": TEXT}, more=False)),
    ({"items": WHOLE}, {"items": NUMBER}),
    ({"items": WHOLE}, {"type": "array"}),
    ({"type": "array", "uniqueItems": True}, {"type": "array"}),
    ({"maxItems": 3}, {"maxItems": 4}),
    (row(TEXT, more=False), row(TEXT, NUMBER, more=False)),
    (row(TEXT, NUMBER), row(TEXT)),
    (row(TEXT, more=TEXT), row(TEXT, TEXT, more=TEXT)),
    (row(TEXT), row(TEXT, {})),
    (TREE, TREE),
]  # fmt: skip
NARROWER: list[tuple[Any, Any]] = [
    (TEXT, NUMBER),
    ({}, TEXT),
    (TEXT, False),
    (NUMBER, WHOLE),
    ({"type": ["string", "null"]}, TEXT),
    (TEXT, {"allOf": [TEXT, {"maxLength": 3}]}),
    ({"anyOf": [TEXT, NUMBER]}, {"oneOf": [TEXT, NUMBER]}),
    ({"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NOTHING]}),
    ({"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT]}),
    ({"anyOf": [WHOLE, {"const": 1}]}, {"anyOf": [NUMBER, {"const": 2}]}),
    ({"maxLength": 3}, {"maxLength": 2}),
    (TEXT, {"maxLength": 2}),
    (TEXT, {"pattern": "a"}),
    ({"pattern": "a"}, {"pattern": "b"}),
    ({"minimum": 2}, {"minimum": 3}),
    (NUMBER, {"multipleOf": 2}),
    ({"multipleOf": 2}, {"multipleOf": 4}),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}),
    ({"const": 1}, {"const": 2}),
    ({"not": {"type": "string", "maxLength": 3}}, {"not": {"type": "string"}}),
    (of(TEXT), of(TEXT, NUMBER)),
    (of(TEXT, more=False), of(more=False)),
    (of(TEXT), of(TEXT, required=["a"])),
    (of(TEXT, more=False), of(TEXT, NUMBER, more=False, required=["b"])),
    (of(TEXT, more=TEXT), of(TEXT, NUMBER, more=TEXT)),
    (of(), of(more=False)),
    (of(), of(more=TEXT)),
    (of(NUMBER, more=False), of(more=WHOLE)),
    (of(more=TEXT), of(more=NUMBER)),
    (of(of(TEXT)), of(of(NUMBER))),
    (of(), of(maxProperties=4)),
    (of(minProperties=1), of(minProperties=2)),
    (of(dependencies={"a": ["b"]}), of(dependencies={"a": ["b", "c"]})),
    (of(), of(dependencies={"a": of(NUMBER)})),
    (of(patternProperties={"^b": TEXT}, more=False),
     of(TEXT, NUMBER, patternProperties={"^b": TEXT}, more=False)),
    ({"items": NUMBER}, {"items": WHOLE}),
    ({"type": "array"}, {"items": WHOLE}),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}),
    ({"minItems": 3}, {"minItems": 4}),
    (row(TEXT), row(TEXT, NUMBER)),
    (row(TEXT, NUMBER, more=False), row(TEXT, more=False)),
    (row(TEXT, more=TEXT), row(TEXT, NUMBER, more=TEXT)),
    (row(NUMBER, NUMBER, more=False), row(NUMBER, more=WHOLE)),
    (TREE, {**TREE, "$defs": {"n": of({"type": "array", "items": TEXT})}}),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), WIDER)
def test_what_was_valid_is_valid(old: Any, new: Any) -> None:
    assert incompatibility(node(old), node(new)) == ""


@pytest.mark.parametrize(("old", "new"), NARROWER)
def test_what_was_valid_may_not_be(old: Any, new: Any) -> None:
    assert incompatibility(node(old), node(new)).startswith("#")


def test_a_reason_says_where() -> None:
    reason = incompatibility(node(of(of(TEXT))), node(of(of(NUMBER))))
    assert reason == "#/properties/a/properties/a: string became number"


def test_each_schema_of_a_sum_needs_one_of_its_own() -> None:
    """Taking the first that fits would leave the second without any."""
    old = {"oneOf": [WHOLE, {"const": 1}, NUMBER]}
    new = {"oneOf": [NUMBER, WHOLE, {"const": 1}]}
    assert incompatibility(node(old), node(new)) == ""


def test_patterns_that_are_not_understood() -> None:
    old = of(TEXT, patternProperties={"(?=a)": TEXT}, more=False)
    with pytest.raises(IncompatibleSchema, match="cannot be compared"):
        incompatibility(node(old), node(of(TEXT, TEXT, more=False)))


def test_a_property_that_nobody_could_have_is_dropped_whatever_patterns_there_are() -> None:
    new = of(patternProperties={"(?=a)": TEXT}, more=False)
    assert incompatibility(node(of(False, more=False)), node(new)) == ""


def test_pairs_are_compared_once() -> None:
    """Twelve levels, each of three schemas of the next one: 3 ** 12 paths, in a few lines."""

    def steps(title: str, last: Any) -> Any:
        names = [f"n{number}" for number in range(13)]
        levels: dict[str, Any] = {
            here: {"anyOf": [of({"$ref": f"#/$defs/{below}"}, title=each) for each in title]}
            for here, below in pairwise(names)
        }
        return {"$ref": "#/$defs/n0", "$defs": {**levels, "n12": last}}

    begun = time.process_time()
    assert incompatibility(node(steps("abc", TEXT)), node(steps("def", TEXT))) == ""
    assert incompatibility(node(steps("abc", TEXT)), node(steps("def", NUMBER)))
    assert time.process_time() - begun < 5


def test_what_would_take_for_ever_is_refused_soon() -> None:
    wide = {"anyOf": [{"$ref": "#/$defs/n", "title": str(each)} for each in range(4_000)]}
    begun = time.process_time()
    with pytest.raises(IncompatibleSchema, match="too large"):
        incompatibility(*(node({**wide, "$defs": {"n": each}}) for each in (TEXT, NUMBER)))
    assert time.process_time() - begun < 5


PATTERNS = {f"^x{number}[a-z]{{0,200}}$": TEXT for number in range(60)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (  # patterns that are large, and names that none of them matches
            {"patternProperties": PATTERNS},
            {
                "patternProperties": PATTERNS,
                "properties": {f"p{number}": TEXT for number in range(60)},
            },
        ),
        (  # a pattern that has many states behind each letter of a long name
            {"patternProperties": {"(.?){300}q": True}},
            {"patternProperties": {"(.?){300}q": True}, "properties": {"abcdefgh" * 1_000: TEXT}},
        ),
        (  # many objects, each compared with one that has many required properties
            {"allOf": [{"properties": {}, "title": str(number)} for number in range(1_500)]},
            {
                "properties": {f"p{number}": {} for number in range(6_000)},
                "required": [f"r{number}" for number in range(15_000)],
                "minProperties": 5,
            },
        ),
        (  # each enum of a hundred, compared with each of a hundred others
            {"anyOf": [{"enum": [number, *range(5_000)]} for number in range(100)]},
            {"anyOf": [{"enum": [-number, *range(5_000)]} for number in range(100, 200)]},
        ),
    ],
)
def test_names_patterns_and_values_are_refused_soon_too(old: Any, new: Any) -> None:
    begun = time.process_time()
    with pytest.raises(IncompatibleSchema, match="too large"):
        incompatibility(node(old), node(new))
    assert time.process_time() - begun < 5


def test_what_was_found_of_a_pair_that_is_met_again_is_looked_at_anew() -> None:
    """B is compared within A, where A is taken for compatible; but it is not."""
    a, b = {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}

    def two(first: Any, kind: Any) -> JsonSchemaNode:
        defs = {"A": of(b, kind, more=False), "B": of(a, more=False)}
        return node({**of(first, b, more=False), "$defs": defs})

    any_first = {"anyOf": [a, {}]}
    assert "string became number" in incompatibility(two(a, TEXT), two(any_first, NUMBER))
    assert incompatibility(two(a, WHOLE), two(any_first, NUMBER)) == ""


@given(SCHEMAS, SCHEMAS)
def test_anything_is_compared_or_refused(old: Any, new: Any) -> None:
    try:
        before, after = node(old), node(new)
    except IncompatibleSchema:
        return
    assert incompatibility(before, node(old)) == ""
    assert isinstance(incompatibility(before, after), str)
    assert incompatibility(before, node(True)) == ""


@given(st.lists(st.sampled_from([TEXT, NUMBER, WHOLE, NOTHING]), min_size=1, max_size=5))
def test_a_sum_is_compatible_with_itself_in_any_order(parts: list[Any]) -> None:
    assert incompatibility(node({"anyOf": parts}), node({"anyOf": parts[::-1]})) == ""


def test_the_verdicts_of_confluents_library() -> None:
    """On every pair of the table; it fails itself where a dash is."""
    rows = Path(__file__).with_name("verdicts.txt").read_text().split()
    read_ones = [read(json.dumps(each).encode()) for each in TABLE]
    ours = [["n" if incompatibility(a, b) else "y" for b in read_ones] for a in read_ones]
    others = [
        (TABLE[at], TABLE[to], theirs)
        for at, row in enumerate(rows)
        for to, theirs in enumerate(row)
        if theirs not in (ours[at][to], "-")
    ]
    assert others == []
    assert len(rows) == len(TABLE)
