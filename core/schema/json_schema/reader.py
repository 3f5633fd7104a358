"""Reads JSON Schema, draft 4 to 2020-12 alike. Pure.

References lead into the document (`#`, and pointers such as `#/$defs/Order`) or into one that it
imports (`order.json#/$defs/Line`): by its name, by its `$id`, or relative to the `$id` of the
document that says it. What no rule of comparison looks at (`format`, `title`, `examples`, ...) is
not looked at here either.

Limits: `NODES_MAX` schemas of all documents, nested `DEPTH_MAX` deep. Invariant: any bytes give a
node, or `IncompatibleSchema` with a sentence for their author.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urljoin

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.definitions import json_of, shown
from magnetar.core.schema.json_schema.model import JsonSchemaNode, meant
from magnetar.core.schema.schema import ImportedSchema

NODES_MAX: Final = 10_000
DEPTH_MAX: Final = 64
TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
SAID_OF: Final[Mapping[str, Collection[str]]] = {
    "object": (
        *("properties", "patternProperties", "additionalProperties", "required"),
        *("minProperties", "maxProperties", "dependencies", "dependentRequired"),
        *("dependentSchemas", "propertyNames"),
    ),
    "array": (
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
        "contains",
    ),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""The words that tell of which type a schema is that does not say it."""
COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
COMBINATIONS: Final = {"allOf": "all", "anyOf": "any", "oneOf": "one"}


def read(definition: bytes, imports: Iterable[ImportedSchema] = ()) -> JsonSchemaNode:
    """The schema that a definition is."""
    return read_document(json_of(definition), imports)


def read_document(document: Any, imports: Iterable[ImportedSchema] = ()) -> JsonSchemaNode:
    """The schema that a document is."""
    return _DocumentReader(document, imports).whole()


class _JsonDocument:
    """A document, and what its references are relative to."""

    __slots__ = ("base", "root")

    def __init__(self, root: Any, base: str) -> None:
        self.root = root
        own = root.get("$id", root.get("id")) if isinstance(root, dict) else None
        self.base = _joined(base, own) if isinstance(own, str) else base


class _DocumentReader:
    """Reads one document, and of others what it refers to."""

    def __init__(self, document: Any, imports: Iterable[ImportedSchema]) -> None:
        self._document = _JsonDocument(document, "")
        self._others: dict[str, _JsonDocument] = {}
        """By their names and ids."""
        for each in imports:
            name = _joined(self._document.base, each.name)
            other = _JsonDocument(json_of(each.definition), name)
            for known_as in (each.name, name, other.base):
                self._others.setdefault(known_as, other)
        self._here = self._document
        """The one that is being read."""
        self._known: dict[int, JsonSchemaNode] = {}
        """By the object that a schema is written as, which lives as long as its document."""
        self._references: list[tuple[JsonSchemaNode, _JsonDocument]] = []
        self._left = NODES_MAX

    def whole(self) -> JsonSchemaNode:
        found = self._node(self._document.root, DEPTH_MAX)
        for one, document in self._references:  # which grows meanwhile
            text = one.words["$ref"]
            self._here = self._document_of(text, document)
            one.inner = self._node(self._at(text), DEPTH_MAX)
        for one, _ in self._references:
            meant(one)
        return found

    def _document_of(self, text: str, said_in: _JsonDocument) -> _JsonDocument:
        """The one that a reference leads into."""
        name = text.partition("#")[0]
        if not name:
            return said_in
        full = _joined(said_in.base, name)
        found = self._others.get(full) or self._others.get(name)
        if found is None and full == self._document.base:
            found = self._document
        if found is None:
            raise IncompatibleSchema(f"{shown(text)} refers to a document that is not known")
        return found

    def _at(self, text: str) -> Any:
        """What a reference refers to, of the document that it leads into."""
        pointer = text.partition("#")[2]
        if pointer and not pointer.startswith("/"):
            raise IncompatibleSchema(f"{shown(text)} refers to something by a name of its own")
        found = self._here.root
        for step in pointer.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name[:9]) < len(found):
                found = found[int(name[:9])]
            else:
                raise IncompatibleSchema(f"{shown(text)} refers to nothing")
        return found

    def _node(self, schema: Any, depth: int) -> JsonSchemaNode:
        if isinstance(schema, bool):
            return JsonSchemaNode("empty" if schema else "false")
        if not isinstance(schema, dict):
            raise IncompatibleSchema(f"this is no schema: {shown(schema)}")
        found = self._known.get(id(schema))
        if found is not None:
            return found
        self._left -= 1
        if self._left < 0:
            raise IncompatibleSchema(f"the definition has more than {NODES_MAX} schemas")
        if not depth:
            raise IncompatibleSchema(f"the definition is nested more than {DEPTH_MAX} deep")
        self._check(schema)
        found = self._known[id(schema)] = self._made(schema, depth - 1)
        return found

    @staticmethod
    def _check(schema: dict[str, Any]) -> None:
        """Raise for a word whose value is of a wrong type, if comparisons look at it."""
        for word in COUNTS:
            count = schema.get(word, 0)
            if not _is_number(count) or count < 0 or count != int(count):
                raise IncompatibleSchema(f"{word} is a number of at least 0")
        for word in SAID_OF["number"]:
            number = schema.get(word, 1)
            draft_4 = word.startswith("exclusive") and isinstance(number, bool)
            if not draft_4 and (not _is_number(number) or (word == "multipleOf" and number <= 0)):
                raise IncompatibleSchema(f"{word} is no number that it may be")
        for word in ("pattern", "$ref"):
            if not isinstance(schema.get(word, ""), str):
                raise IncompatibleSchema(f"{word} is a text")
        if not isinstance(schema.get("enum", []), list):
            raise IncompatibleSchema("enum is a list")
        _names(schema, "required")

    def _made(self, schema: dict[str, Any], depth: int) -> JsonSchemaNode:
        if "$ref" in schema:
            reference = JsonSchemaNode("reference", schema)
            self._references.append((reference, self._here))
            return reference
        parts = [
            self._combined(kind, schema, word, depth)
            for word, kind in COMBINATIONS.items()
            if word in schema
        ]
        parts += [JsonSchemaNode(kind, schema) for kind in ("enum", "const") if kind in schema]
        if "not" in schema:
            parts.append(negation := JsonSchemaNode("not", schema))
            negation.inner = self._node(schema["not"], depth)
        if "if" in schema:
            parts.append(JsonSchemaNode("condition", schema))
        parts += self._typed(schema, depth)
        if len(parts) == 1:
            return parts[0]
        made = JsonSchemaNode("all" if parts else "empty", schema)
        made.parts = parts
        return made

    def _combined(self, kind: str, schema: dict[str, Any], word: str, depth: int) -> JsonSchemaNode:
        if not isinstance(schema[word], list) or not schema[word]:
            raise IncompatibleSchema(f"{word} is a list of schemas")
        made = JsonSchemaNode(kind, schema)
        made.parts = [self._node(each, depth) for each in schema[word]]
        return made

    def _typed(self, schema: dict[str, Any], depth: int) -> list[JsonSchemaNode]:
        """What it says of types: nothing, one of them, or any of several."""
        if "type" not in schema:
            kinds = [
                kind for kind, words in SAID_OF.items() if any(map(schema.__contains__, words))
            ]
            return [self._of_type(kind, schema, depth) for kind in kinds]
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        for kind in kinds:
            if not isinstance(kind, str) or kind not in TYPES:
                raise IncompatibleSchema(f"there is no type {shown(kind)}")
        if not kinds:
            raise IncompatibleSchema("type is a name, or a list of names")
        found = [self._of_type(kind, schema, depth) for kind in kinds]
        if len(found) == 1:
            return found
        made = JsonSchemaNode("any", schema)
        made.parts = found
        return [made]

    def _of_type(self, kind: str, schema: dict[str, Any], depth: int) -> JsonSchemaNode:
        made = JsonSchemaNode("number" if kind == "integer" else kind, schema)
        if kind == "integer":
            made.words = {**schema, "type": "integer"}
        elif kind == "number" and schema.get("type") != "number":
            made.words = {**schema, "type": "number"}
        elif kind == "object":
            self._object(made, schema, depth)
        elif kind == "array":
            self._array(made, schema, depth)
        return made

    def _object(self, made: JsonSchemaNode, schema: dict[str, Any], depth: int) -> None:
        for name, each in _table(schema, "properties").items():
            made.members[name] = self._node(each, depth)
        for pattern, each in _table(schema, "patternProperties").items():
            made.patterns.append((pattern, self._node(each, depth)))
        dependents = {**_table(schema, "dependencies"), **_table(schema, "dependentSchemas")}
        for name, each in dependents.items():
            if isinstance(each, list):
                _names(dependents, name)
            else:
                made.dependents[name] = self._node(each, depth)
        for name in _table(schema, "dependentRequired"):
            _names(schema["dependentRequired"], name)
        made.additional = self._rest(schema, "additionalProperties", depth)

    def _array(self, made: JsonSchemaNode, schema: dict[str, Any], depth: int) -> None:
        items, rest = schema.get("items"), "additionalItems"
        if "prefixItems" in schema:
            items, rest = schema["prefixItems"], "items"
            if not isinstance(items, list):
                raise IncompatibleSchema("prefixItems is a list of schemas")
        if isinstance(items, list):
            made.parts = [self._node(each, depth) for each in items]
            made.additional = self._rest(schema, rest, depth)
        elif items is not None:
            made.inner = self._node(items, depth)

    def _rest(self, schema: dict[str, Any], word: str, depth: int) -> JsonSchemaNode | bool:
        found = schema.get(word, True)
        return found if isinstance(found, bool) else self._node(found, depth)


def _joined(base: str, reference: str) -> str:
    """A reference as it is beside a base, without what it points at."""
    try:
        return urljoin(base, reference).partition("#")[0]
    except ValueError as error:
        raise IncompatibleSchema(f"{shown(reference)} cannot be a reference") from error


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < float("inf")  # type: ignore[arg-type]


def _table(schema: Mapping[str, Any], word: str) -> dict[str, Any]:
    found = schema.get(word, {})
    if not isinstance(found, dict):
        raise IncompatibleSchema(f"{word} is an object")
    return found


def _names(schema: Mapping[str, Any], word: str) -> None:
    """Raise unless it is a list of names. Draft 3's `required`, a yes or no, says nothing now."""
    found = schema.get(word, [])
    if not isinstance(found, bool) and (
        not isinstance(found, list) or not all(isinstance(each, str) for each in found)
    ):
        raise IncompatibleSchema(f"{shown(word)} is a list of names")
