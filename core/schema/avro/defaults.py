"""Whether the default of a field is a value of its type. Pure.

As Avro encodes defaults when a reader needs one (`ResolvingGrammarGenerator.encode` of 1.12): a
union takes the first branch that suits the kind of JSON, and lists and objects are not told apart
where they are empty or walked by name.
"""

from __future__ import annotations

from typing import Any

from magnetar.core.schema.avro.model import NO_DEFAULT, AvroNode
from magnetar.core.schema.definitions import Effort


def fits(node: AvroNode, value: Any, effort: Effort) -> bool:
    """Whether a JSON value can be encoded as that type. A record whose defaults contain it is
    deeper than `effort` allows: encoding it would not end.
    """
    with effort:
        return _fits(node, value, effort)


def _fits(node: AvroNode, value: Any, effort: Effort) -> bool:
    if node.kind == "record":
        return _record_fits(node, value, effort)
    if node.kind == "union":
        effort.look_through(len(node.parts))
        branch = next((each for each in node.parts if _suits(each.kind, value)), None)
        return branch is not None and fits(branch, value, effort)
    if node.kind in ("array", "map"):
        items = value if isinstance(value, list) and node.kind == "array" else ()
        values = value.values() if isinstance(value, dict) else items
        return all(fits(node.parts[0], each, effort) for each in values)
    if node.kind == "enum":
        effort.look_through(len(node.symbols))
        return value in node.symbols
    return _suits(node.kind, value)


def _record_fits(node: AvroNode, value: Any, effort: Effort) -> bool:
    effort.look_through(len(node.fields))
    given = value if isinstance(value, dict) else {}
    for name, field in node.fields.items():
        inner = given.get(name, field.default)
        if inner is NO_DEFAULT or not fits(field.type, inner, effort):
            return False
    return True


def _suits(kind: str, value: Any) -> bool:
    """Whether JSON of that kind may be a value of such a type."""
    if kind in ("string", "bytes", "fixed", "enum"):
        return isinstance(value, str)
    if kind in ("int", "long", "float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "null":
        return value is None
    return isinstance(value, list if kind == "array" else dict)
