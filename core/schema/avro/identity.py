"""When two definitions are the same schema. Pure.

As `Schema.equals` of Avro 1.12: white space, the order of keys, `doc` and aliases make no
difference; names, the order of fields and symbols, defaults and all other properties do.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from magnetar.core.schema.avro.model import NAMED, NO_DEFAULT, AvroNode


def identity_of(root: AvroNode) -> bytes:
    """A digest that two definitions share if they are the same schema."""
    shapes: dict[str, Any] = {}
    waiting = [root]
    top = _reference(root, waiting)
    while waiting:
        node = waiting.pop()
        if node.kind in NAMED and node.full_name not in shapes:
            shapes[node.full_name] = None
            shapes[node.full_name] = _shape(node, waiting)
    return hashlib.sha256(msgspec.json.encode([top, shapes], order="sorted")).digest()


def _reference(node: AvroNode, waiting: list[AvroNode]) -> Any:
    """A type where it is used: named ones by their name, which `waiting` gets."""
    if node.kind in NAMED:
        waiting.append(node)
        return node.full_name
    parts = [_reference(part, waiting) for part in node.parts]
    return [node.kind, parts, node.properties]


def _shape(node: AvroNode, waiting: list[AvroNode]) -> Any:
    fields = [
        [
            field.name,
            _reference(field.type, waiting),
            [] if field.default is NO_DEFAULT else [field.default],
            field.order,
            field.properties,
        ]
        for field in node.fields.values()
    ]
    return [node.kind, fields, node.symbols, node.size, node.properties]
