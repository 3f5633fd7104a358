"""Reads JSON Schema, draft 4 to 2020-12. Pure.

What is of no draft that its document names is passed over, as that draft wants it: `prefixItems`,
`unevaluatedItems` and words beside a `$ref` say something since 2019-09, `additionalItems` until
then. A document that names none is of draft 7.

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
        *("minProperties", "maxProperties", "dependencies", "propertyNames"),
    ),
    "array": (*("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),),
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""The words that tell of which type a schema is that does not say it."""
SAID_OF_IN_NEW_DRAFTS: Final[Mapping[str, Collection[str]]] = {
    **SAID_OF,
    "object": (
        *SAID_OF["object"],
        *("dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    ),
    "array": (*SAID_OF["array"], "prefixItems", "unevaluatedItems"),
}
COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
NEW_DRAFTS: Final = ("2019-09", "2020-12")
WRITTEN_AS_BOOLEAN: Final = {"": True}
"""The words of `true`, which is not written like `{}`."""
COMBINATIONS: Final = {"allOf": "all", "anyOf": "any", "oneOf": "one"}


def read(definition: bytes, imports: Iterable[ImportedSchema] = ()) -> JsonSchemaNode:
    """The schema that a definition is."""
    return read_document(json_of(definition), imports)


def read_document(document: Any, imports: Iterable[ImportedSchema] = ()) -> JsonSchemaNode:
    """The schema that a document is."""
    return _DocumentReader(document, imports).whole()


class _JsonDocument:
    """A document, and what its references are relative to."""

    __slots__ = ("base", "is_new", "root")

    def __init__(self, root: Any, base: str) -> None:
        self.root = root
        draft = root.get("$schema") if isinstance(root, dict) else None
        self.is_new = isinstance(draft, str) and any(each in draft for each in NEW_DRAFTS)
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
        self._joins: set[int] = set()
        """The nodes of schemas that say several things. In newer drafts they are not compared as
        one where they are a part of a combination, but each of these things is.
        """
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
            return JsonSchemaNode("empty" if schema else "false", WRITTEN_AS_BOOLEAN)
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
        parts = []
        if "$ref" in schema:
            reference = JsonSchemaNode("reference", schema)
            self._references.append((reference, self._here))
            if not self._here.is_new:
                return reference
            parts.append(reference)
        parts += [
            self._combined(kind, schema, word, depth)
            for word, kind in COMBINATIONS.items()
            if word in schema
        ]
        parts += [JsonSchemaNode(kind, schema) for kind in ("enum", "const") if kind in schema]
        if "not" in schema:
            parts.append(negation := JsonSchemaNode("not", schema))
            negation.inner = self._node(schema["not"], depth)
        if "if" in schema or (not self._here.is_new and ("then" in schema or "else" in schema)):
            parts.append(JsonSchemaNode("condition", schema))
        parts += self._typed(schema, depth)
        if len(parts) == 1:
            return parts[0]
        made = JsonSchemaNode("all" if parts else "empty", schema)
        made.parts = parts
        if parts:
            self._joins.add(id(made))
        return made

    def _combined(self, kind: str, schema: dict[str, Any], word: str, depth: int) -> JsonSchemaNode:
        if not isinstance(schema[word], list) or not schema[word]:
            raise IncompatibleSchema(f"{word} is a list of schemas")
        made = JsonSchemaNode(kind, schema)
        for each in schema[word]:
            part = self._node(each, depth)
            is_taken_apart = self._here.is_new and id(part) in self._joins
            made.parts += part.parts if is_taken_apart else [part]
        return made

    def _typed(self, schema: dict[str, Any], depth: int) -> list[JsonSchemaNode]:
        """What it says of types: of those that it has (any of several), and of others by words that
        belong to these.
        """
        found = []
        named = schema.get("type", ())
        kinds = named if isinstance(named, list | tuple) else [named]
        for kind in kinds:
            if not isinstance(kind, str) or kind not in TYPES:
                raise IncompatibleSchema(f"there is no type {shown(kind)}")
        if kinds:
            found = [self._of_type(kind, schema, depth) for kind in kinds]
        elif "type" in schema:
            raise IncompatibleSchema("type is a name, or a list of names")
        if len(found) > 1:
            made = JsonSchemaNode("any", schema)
            made.parts = found
            found = [made]
        known = {"number" if kind == "integer" else kind for kind in kinds}
        others = [kind for kind in self._told(schema) if kind not in known]
        return found + [self._of_type(kind, schema, depth) for kind in others]

    def _told(self, schema: dict[str, Any]) -> list[str]:
        """The types that it says something of."""
        is_new = self._here.is_new
        said = schema.keys() - ({"properties"} if is_new and schema.get("properties") == {} else ())
        said_of = SAID_OF_IN_NEW_DRAFTS if is_new else SAID_OF
        return [kind for kind, words in said_of.items() if not said.isdisjoint(words)]

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
        self._dependencies(made, schema, depth)
        made.additional = self._rest(schema, "additionalProperties", depth)
        made.unevaluated = self._unevaluated(schema, "unevaluatedProperties", depth)

    def _dependencies(self, made: JsonSchemaNode, schema: dict[str, Any], depth: int) -> None:
        """What is needed with a property: newer drafts have a word for names, and one for
        schemas.
        """
        if self._here.is_new:
            names, schemas = _table(schema, "dependentRequired"), _table(schema, "dependentSchemas")
        else:
            said = _table(schema, "dependencies")
            names = {name: each for name, each in said.items() if isinstance(each, list)}
            schemas = {name: each for name, each in said.items() if name not in names}
        for name, each in names.items():
            if not isinstance(each, list):
                raise IncompatibleSchema(f"what {shown(name)} needs is a list of names")
            _names(names, name)
            made.needed[name] = frozenset(each)
        for name, each in schemas.items():
            made.dependents[name] = self._node(each, depth)

    def _array(self, made: JsonSchemaNode, schema: dict[str, Any], depth: int) -> None:
        items, is_new = schema.get("items"), self._here.is_new
        first = schema.get("prefixItems") if is_new else items
        made.unevaluated = self._unevaluated(schema, "unevaluatedItems", depth)
        if isinstance(first, list):
            made.parts = [self._node(each, depth) for each in first]
            made.additional = self._rest(schema, "items" if is_new else "additionalItems", depth)
            return
        if is_new and first is not None:
            raise IncompatibleSchema("prefixItems is a list of schemas")
        if is_new and isinstance(items, bool):
            made.additional = items
        elif items is not None:
            made.inner = self._node(items, depth)
        if not is_new and (items is None or schema.get("additionalItems") is not False):
            made.additional = self._rest(schema, "additionalItems", depth)

    def _unevaluated(self, schema: dict[str, Any], word: str, depth: int) -> JsonSchemaNode | None:
        if not self._here.is_new or word not in schema:
            return None
        return self._node(schema[word], depth)

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
