"""A table of schemas in JSON Schema, each of which is compared with every other.

They are small, and differ from one another in one thing: types and bounds, open and closed objects,
properties and items that come and go, required ones, combinations of schemas and the order of their
parts, references, schemas that contain themselves, words of older and newer drafts. `verdicts.txt`
has what Confluent's library says of each pair.
"""

from typing import Any

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
CLOSED = {"additionalProperties": False}
TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}


def thing(
    *required: str, rest: Any = None, more: dict[str, Any] | None = None, **fields: Any
) -> Any:
    """An object with these properties."""
    made: dict[str, Any] = {"type": "object", "properties": fields, **(more or {})}
    if required:
        made["required"] = list(required)
    if rest is not None:
        made["additionalProperties"] = rest
    return made


def tree(kind: Any, **more: Any) -> Any:
    """A schema that contains itself."""
    return {
        "definitions": {
            "Tree": thing(value=kind, rest=False, left={"$ref": "#/definitions/Tree"}, **more)
        },
        "$ref": "#/definitions/Tree",
    }


SCHEMAS: list[Any] = [
    # types, and what is left open
    {},
    TEXT,
    NUMBER,
    WHOLE,
    {"type": "boolean"},
    {"type": "null"},
    {"type": "object"},
    {"type": "array"},
    {"type": ["string", "null"]},
    {"type": ["null", "string"]},
    {"type": ["string", "integer"]},
    {"type": ["string", "number", "null"]},
    {"not": {}},
    # bounds
    {"type": "string", "maxLength": 5},
    {"type": "string", "maxLength": 9, "minLength": 1},
    {"type": "string", "pattern": "^a"},
    {"type": "string", "pattern": "^b"},
    {"type": "string", "format": "date"},
    {"type": "number", "minimum": 1},
    {"type": "number", "minimum": 2, "maximum": 9},
    {"type": "number", "exclusiveMaximum": 9},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 5},
    {"type": "integer", "multipleOf": 2},
    {"type": "integer", "multipleOf": 4},
    {"type": "number", "multipleOf": 0.5},
    {**DRAFT_4, "type": "number", "minimum": 1, "exclusiveMinimum": True},
    # values
    {"enum": ["a", "b"]},
    {"enum": ["b", "a", "c"]},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "enum": ["a"]},
    {"const": "a"},
    {"const": 1},
    # objects
    thing(),
    thing(rest=False),
    thing(rest=TEXT),
    thing(rest=True),
    thing(a=TEXT),
    thing(a={}),
    thing(a=True),
    thing("a", a=TEXT),
    thing("a", a={"type": "string", "default": "x"}),
    thing(a=TEXT, rest=False),
    thing("a", a=TEXT, rest=False),
    thing(a=TEXT, b=WHOLE, rest=False),
    thing("b", a=TEXT, b=WHOLE, rest=False),
    thing("b", a=TEXT, b={"type": "integer", "default": 0}, rest=False),
    thing(a=TEXT, b=WHOLE),
    thing(a=TEXT, rest=TEXT),
    thing(a=TEXT, rest=WHOLE),
    thing(a=TEXT, b=TEXT, rest=TEXT),
    thing("b", a=TEXT, b=TEXT, rest=TEXT),
    thing(a=WHOLE),
    thing(a=NUMBER, rest=False),
    thing("b", a=TEXT),
    thing(a=TEXT, more={"patternProperties": {"^b": WHOLE}}),
    thing(a=TEXT, rest=False, more={"patternProperties": {"^b": WHOLE}}),
    thing(a=TEXT, rest=False, more={"patternProperties": {"^b": TEXT}}),
    thing(a=TEXT, more={"maxProperties": 3}),
    thing(a=TEXT, more={"maxProperties": 5, "minProperties": 1}),
    thing(a=TEXT, more={"dependencies": {"a": ["b"]}}),
    thing(a=TEXT, more={"dependencies": {"a": ["b", "c"]}}),
    thing(a=TEXT, more={"dependencies": {"a": {"required": ["b"]}}}),
    thing(a=thing(b=TEXT, rest=False), rest=False),
    thing(a=thing(b=TEXT, c=TEXT, rest=False), rest=False),
    thing(a={"type": ["string", "null"]}, rest=False),
    thing(a=False, rest=False),
    # arrays
    {"type": "array", "items": TEXT},
    {"type": "array", "items": NUMBER},
    {"type": "array", "items": WHOLE},
    {"type": "array", "items": {}},
    {"type": "array", "items": [TEXT]},
    {"type": "array", "items": [TEXT, WHOLE]},
    {"type": "array", "items": [TEXT], "additionalItems": False},
    {"type": "array", "items": [TEXT, WHOLE], "additionalItems": False},
    {"type": "array", "items": [TEXT], "additionalItems": WHOLE},
    {"type": "array", "items": [TEXT], "additionalItems": NUMBER},
    {"type": "array", "additionalItems": False},
    {"type": "array", "items": TEXT, "additionalItems": False},
    {"type": "array", "items": TEXT, "maxItems": 3},
    {"type": "array", "items": TEXT, "maxItems": 5, "minItems": 1},
    {"type": "array", "items": TEXT, "uniqueItems": True},
    {"type": "array", "contains": TEXT},
    # combinations
    {"allOf": [TEXT]},
    {"anyOf": [TEXT]},
    {"oneOf": [TEXT]},
    {"anyOf": [TEXT, WHOLE]},
    {"anyOf": [WHOLE, TEXT]},
    {"anyOf": [TEXT, WHOLE, {"type": "null"}]},
    {"anyOf": [TEXT, NUMBER]},
    {"oneOf": [TEXT, WHOLE]},
    {"oneOf": [{"type": "null"}, TEXT, NUMBER]},
    {"oneOf": [TEXT, TEXT, WHOLE]},
    {"allOf": [thing(a=TEXT), thing(b=WHOLE)]},
    {"allOf": [thing(a=TEXT), thing(b=WHOLE), thing(c=WHOLE)]},
    {"allOf": [thing(b=WHOLE)]},
    {"anyOf": [thing(a=TEXT), thing(b=WHOLE)]},
    {"oneOf": [thing(a=TEXT), thing(b=WHOLE)]},
    {"oneOf": [thing(a=TEXT, rest=False), thing(b=WHOLE, rest=False)]},
    {"not": TEXT},
    {"not": NUMBER},
    {"not": WHOLE},
    thing(a=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    {"if": TEXT, "then": {"minLength": 1}},
    {"type": "string", "if": {"minLength": 3}, "then": {"pattern": "^a"}},
    {"then": {"minLength": 1}},
    {"oneOf": [{}, True]},
    {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
    # words of another type than the schema's
    {"type": "string", "minimum": 1},
    {"type": ["string", "null"], "properties": {"a": TEXT}},
    {"type": ["string", "null"], "properties": {"a": {}}},
    # references, and schemas that contain themselves
    {"definitions": {"T": TEXT}, "$ref": "#/definitions/T"},
    {"definitions": {"T": WHOLE}, "anyOf": [{"$ref": "#/definitions/T"}, TEXT]},
    thing(a={"$ref": "#/definitions/T"}, rest=False, more={"definitions": {"T": NUMBER}}),
    tree(WHOLE),
    tree(NUMBER),
    tree(TEXT),
    tree(NUMBER, right={"$ref": "#/definitions/Tree"}),
    # words of the draft of 2020
    {**DRAFT_2020, "type": "string"},
    {**DRAFT_2020, "type": "array", "prefixItems": [TEXT]},
    {**DRAFT_2020, "type": "array", "prefixItems": [TEXT], "items": False},
    {**DRAFT_2020, "type": "array", "prefixItems": [TEXT, WHOLE], "items": False},
    {**DRAFT_2020, "type": "array", "prefixItems": [TEXT], "items": WHOLE},
    {**DRAFT_2020, "type": "array", "items": WHOLE},
    {**DRAFT_2020, "type": "array", "unevaluatedItems": False},
    {**DRAFT_2020, "type": "array", "prefixItems": [TEXT], "unevaluatedItems": WHOLE},
    {**DRAFT_2020, "type": "array", "contains": TEXT, "minContains": 2},
    {**DRAFT_2020, "type": "array", "contains": TEXT, "minContains": 3, "maxContains": 5},
    {**DRAFT_2020, **thing(a=TEXT)},
    {**DRAFT_2020, **thing(a=TEXT, more={"unevaluatedProperties": False})},
    {**DRAFT_2020, **thing(a=TEXT, b=WHOLE, more={"unevaluatedProperties": False})},
    {**DRAFT_2020, **thing(a=TEXT, more={"unevaluatedProperties": WHOLE})},
    {**DRAFT_2020, **thing(a=TEXT, b=WHOLE, more={"unevaluatedProperties": NUMBER})},
    {**DRAFT_2020, **thing(a=TEXT, more={"dependentRequired": {"a": ["b"]}})},
    {**DRAFT_2020, **thing(a=TEXT, more={"dependentRequired": {"a": ["b", "c"]}})},
    {**DRAFT_2020, **thing(a=TEXT, more={"dependentSchemas": {"a": thing(b=TEXT)}})},
    {**DRAFT_2020, "$defs": {"T": TEXT}, "$ref": "#/$defs/T"},
    {**DRAFT_2020, "$defs": {"T": TEXT}, "$ref": "#/$defs/T", "maxLength": 5},
    {**DRAFT_2020, "type": ["string", "null"]},
    {**DRAFT_2020, "enum": ["a", "b"]},
    {**DRAFT_2020, "const": "a"},
    {**DRAFT_2020, "type": "integer", "exclusiveMinimum": 1},
    {**DRAFT_2020, "oneOf": [TEXT, WHOLE]},
    {**DRAFT_2020, "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
    {**DRAFT_2020, "anyOf": [{"enum": ["a"]}, {"type": "null"}]},
    {**DRAFT_2020, "type": "string", "enum": ["a"]},
    {**DRAFT_2020, "properties": {}},
    {**DRAFT_2020, "unevaluatedItems": False},
    {**DRAFT_2020, "items": False},
]
