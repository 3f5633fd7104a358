"""A schema in JSON Schema, as it is compared. Pure.

Each schema of a document becomes one node, by what it says of values:

    empty, false                       any value, none
    string, number, boolean, null      values of that type, with bounds among `words`
    object, array                      those, with the schemas of what they hold
    enum, const, not, condition        values of a list; one value; what another schema refuses
    all, any, one                      what several schemas say (`allOf`, `anyOf`, `oneOf`)
    reference                          what another schema of the document says

One that says several of these at once is `all` of them, and one of several types is `any` of them.
That is how registries beside Kafka take schemas apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import IncompatibleSchema

NO_WORDS: Final[Mapping[str, Any]] = {}
REFERENCES_MAX: Final = 100
"""References that refer to each other, one after the other."""
COMBINED: Final = frozenset({"all", "any", "one"})


class JsonSchemaNode:
    """See the module's docstring."""

    __slots__ = (
        "additional",
        "dependents",
        "inner",
        "kind",
        "members",
        "needed",
        "parts",
        "patterns",
        "unevaluated",
        "words",
    )

    def __init__(self, kind: str, words: Mapping[str, Any] = NO_WORDS) -> None:
        self.kind = kind
        self.words = words
        """What the schema says, as it is written."""
        self.parts: list[JsonSchemaNode] = []
        """Of a combination; of an array, the schemas of its first items."""
        self.members: dict[str, JsonSchemaNode] = {}
        """Properties of an object."""
        self.patterns: list[tuple[str, JsonSchemaNode]] = []
        """Properties by patterns of their names."""
        self.needed: dict[str, frozenset[str]] = {}
        """The properties that have to be there if there is one of that name."""
        self.dependents: dict[str, JsonSchemaNode] = {}
        """What holds if there is a property of that name."""
        self.additional: JsonSchemaNode | bool = True
        """Properties that are not named, or items beyond the first ones."""
        self.unevaluated: JsonSchemaNode | None = None
        """The same beyond what any schema beside this one names; none if it is not said."""
        self.inner: JsonSchemaNode | None = None
        """Of all items of an array; what `not` negates; what a reference refers to."""

    @property
    def rest(self) -> JsonSchemaNode | bool:
        """What holds for properties or items that are not named: a schema, anything, or nothing."""
        if self.additional is not True or self.unevaluated is None:
            return self.additional
        as_bool = {"empty": True, "false": False}
        return as_bool.get(self.unevaluated.kind, self.unevaluated)

    @property
    def is_open(self) -> bool:
        """Whether whatever is not named may be anything."""
        return self.rest is True and not self.patterns


def meant(node: JsonSchemaNode) -> JsonSchemaNode:
    """What a reference refers to in the end."""
    for _ in range(REFERENCES_MAX):
        if node.kind != "reference":
            return node
        assert node.inner is not None
        node = node.inner
    raise IncompatibleSchema("references refer to each other")


def written(value: Any) -> bytes:
    """JSON in one form: the order of names and white space make no difference."""
    return msgspec.json.encode(value, order="sorted")
