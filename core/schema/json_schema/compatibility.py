"""Whether what is valid by one schema in JSON Schema is valid by another. Pure.

The verdicts are those of Confluent's registry (`json/diff` of its `json-schema-provider`, 8.0), by
its model of contents: of an object that may have any other property (open), the schema of a new
property may forbid what was written; of a closed one no property may be dropped. So an object whose
readers are to get more properties says `additionalProperties: false`, or what others have to be.

    of the new schema     is compatible if
    a bound               it is wider, or gone
    a type                it is the same, `integer` became `number`, or anything may be there
    a required property   it was required, or has a default, or nobody could have written it
    an enum               it has all values of the old one
    anyOf, oneOf          each old schema has a new one of its own that it is compatible with
    allOf                 each new schema has an old one of its own

Patterns of properties are
matched in linear time (`core/patterns`); a comparison that needs one which is not understood there
is refused.

Invariant: a comparison ends within `Effort`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Final

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.patterns.patterns import BadPattern, compiled
from magnetar.core.schema.definitions import Effort, shown
from magnetar.core.schema.json_schema.model import COMBINED, JsonSchemaNode, meant, written

STATES_PER_STEP: Final = 50
"""States of a pattern that are looked at, letter by letter, in the time of one step."""

Pair = tuple[int, int]
"""An old schema and a new one, by their identities: both documents live as long."""


def incompatibility(old: JsonSchemaNode, new: JsonSchemaNode) -> str:
    """Why something that is valid by the old schema may not be by the new one, or nothing.

    A pair of schemas that is met again while it is compared counts as compatible. What was found by
    that may be wrong once the pair turns out not to be, so it is all done again with what is known
    then, until nothing new is.
    """
    effort = Effort()
    refused: dict[Pair, str] = {}
    while True:
        comparison = _SchemaComparison(effort, refused)
        reason = comparison.of(old, new, "#")
        known = len(refused)
        refused = {pair: why for pair, why in comparison.found.items() if why}
        if reason or not comparison.has_assumed or len(refused) == known:
            return reason


class _SchemaComparison:
    """One comparison of two documents. Its methods return a reason, or nothing."""

    def __init__(self, effort: Effort, refused: Mapping[Pair, str]) -> None:
        self.found: dict[Pair, str] = {}
        self.has_assumed = False
        """Whether a pair was met again while it was compared."""
        self._effort = effort
        self._refused = refused
        """What an earlier comparison has found, of pairs that are met again."""
        self._under_way: set[Pair] = set()

    def of(self, old: JsonSchemaNode | None, new: JsonSchemaNode | None, where: str) -> str:
        if new is None:
            return ""
        if old is None:
            return f"{where}: a schema was added"
        old, new = meant(old), meant(new)
        pair = id(old), id(new)
        with self._effort:
            known = self.found.get(pair)
            if known is not None:
                return known
            if pair in self._under_way:
                self.has_assumed = True
                return self._refused.get(pair, "")
            self._under_way.add(pair)
            try:
                reason = self.found[pair] = self._of(old, new, where)
            finally:
                self._under_way.discard(pair)
            return reason

    def _of(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        if self._fits_a_part(old, new, where):
            return ""
        if old.kind in COMBINED and new.kind in COMBINED:
            return self._combinations(old, new, where)
        if old.kind != new.kind:
            if old.kind == "false" or new.kind == "empty":
                return ""
            return f"{where}: {_named(old)} became {_named(new)}"
        if new.kind == "not":
            return f"{where}: more is excluded" if self.of(new.inner, old.inner, where) else ""
        if new.kind == "object":
            return self._objects(old, new, where)
        if new.kind == "array":
            return self._arrays(old, new, where)
        if new.kind == "enum":
            self._effort.look_through(len(old.words["enum"]) + len(new.words["enum"]))
        return _simple(old, new, where)

    def _fits_a_part(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> bool:
        """Whether one of the two is a combination, and what decides is in it: its only schema, any
        one of an old `allOf`, or any one of a new `anyOf` or `oneOf`.
        """
        if (old.kind in COMBINED) is (new.kind in COMBINED):
            return False
        if old.kind in COMBINED:
            decide = old.parts if old.kind == "all" or len(old.parts) == 1 else []
            return any(not self.of(each, new, where) for each in decide)
        decide = new.parts if new.kind != "all" or len(new.parts) == 1 else []
        return any(not self.of(old, each, where) for each in decide)

    # -- combinations -------------------------------------------------------------------------

    def _combinations(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        was_one, is_one = len(old.parts) == 1, len(new.parts) == 1
        may_become = {
            "any": True,
            "one": was_one or (is_one and old.kind == "all"),
            "all": was_one and is_one,
        }
        if old.kind != new.kind and not may_become[new.kind]:
            return f"{where}: {old.kind}Of became {new.kind}Of"
        before, after = _different(old.parts), _different(new.parts)
        if new.kind == "all" and len(before) < len(after):
            return f"{where}: allOf has more schemas"
        if old.kind != "all" and len(before) > len(after):
            return f"{where}: {old.kind}Of has lost schemas"
        fits = [
            [at for at, other in enumerate(after) if not self.of(one, other, where)]
            for one in before
        ]
        if _matched(fits) < min(len(before), len(after)):
            return f"{where}: {new.kind}Of has other schemas"
        return ""

    # -- objects ------------------------------------------------------------------------------

    def _objects(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        had, has = _required(old), _required(new)
        named = had, has, old.members, new.members, *old.needed.values(), *new.needed.values()
        self._effort.look_through(sum(map(len, named)))
        for name in old.members.keys() & new.members.keys():
            if name in has and name not in had and not _has_default(new.members[name]):
                return f"{where}: property {shown(name)} is required"
        return (
            self._properties(old, new, where)
            or self._dependencies(old, new, where)
            or self._additional(old, new, f"{where}: properties")
            or self._unevaluated(old, new, f"{where}: properties")
            or _upper(old, new, "maxProperties", where)
            or _lower(old, new, "minProperties", where)
        )

    def _properties(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        has = _required(new)
        rest_of_old = self._rest_for(old, new.members.keys() - old.members.keys())
        gone = old.members.keys() - new.members.keys()
        # a property that nobody could have may go, whatever patterns there are
        gone = {name for name in gone if meant(old.members[name]).kind != "false"}
        rest_of_new = self._rest_for(new, gone)
        for name in sorted(old.members.keys() | new.members.keys()):
            at = f"{where}/properties/{shown(name)}"
            reason = ""
            if name in rest_of_new:
                reason = self._dropped(old.members[name], rest_of_new[name], at)
            elif name in rest_of_old:
                after = new.members[name]
                reason = self._added(rest_of_old[name], after, at)
                is_needed = name in has and not _has_default(after) and not old.is_open
                if not reason and is_needed:
                    reason = f"{at}: it was added, and is required"
            elif name in new.members:
                reason = self.of(old.members[name], new.members[name], at)
            if reason:
                return reason
        return ""

    def _rest_for(
        self, node: JsonSchemaNode, names: Collection[str]
    ) -> dict[str, JsonSchemaNode | bool]:
        """What holds for properties that an object does not name: a schema, anything, or nothing;
        with patterns, nothing but what they match, as in that registry.

        The outer loop is that of the patterns, so that each is compiled once.
        """
        other = node.rest if isinstance(node.rest, JsonSchemaNode) else node.is_open
        found: dict[str, JsonSchemaNode | bool] = {}
        for pattern, schema in node.patterns if names else ():
            try:
                automaton = compiled(f".*(?:{pattern}).*")
            except BadPattern as error:
                text = f"the pattern {shown(pattern)} cannot be compared: {error}"
                raise IncompatibleSchema(text) from error
            self._effort.spend(automaton.size)
            for name in names:
                if name not in found:
                    self._effort.spend(1 + len(name) * automaton.size // STATES_PER_STEP)
                    if automaton.matches(name):
                        found[name] = schema
        return {name: found.get(name, other) for name in names}

    def _dropped(self, before: JsonSchemaNode, rest: JsonSchemaNode | bool, at: str) -> str:
        """Compare a schema that is not named any more with what holds for what is not."""
        if isinstance(rest, JsonSchemaNode):
            return self.of(before, rest, at)
        if rest or meant(before).kind == "false":
            return ""
        return f"{at}: it is not allowed any more"

    def _added(self, rest: JsonSchemaNode | bool, after: JsonSchemaNode, at: str) -> str:
        """Compare what held for what was not named with a schema that is named now."""
        if isinstance(rest, JsonSchemaNode):
            return self.of(rest, after, at)
        if not rest or meant(after).kind == "empty":
            return ""
        return f"{at}: it was added, and could have been anything before"

    def _dependencies(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        for name, needed in new.needed.items():
            if name not in old.needed or not needed <= old.needed[name]:
                return f"{where}: property {shown(name)} depends on more"
        for name, schema in new.dependents.items():
            at = f"{where}/dependencies/{shown(name)}"
            reason = self.of(old.dependents.get(name), schema, at)
            if reason:
                return reason
        return ""

    def _additional(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        """Compare what is not named: anything, nothing, or by a schema."""
        before, after = old.additional, new.additional
        if after is True or before is False is after:
            return ""
        if after is False:
            return f"{where} that are not named are not allowed any more"
        if before is False:
            return ""
        if before is True:
            return f"{where} that are not named are limited"
        assert isinstance(before, JsonSchemaNode)
        assert isinstance(after, JsonSchemaNode)
        return self.of(before, after, f"{where} that are not named")

    def _unevaluated(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        """Compare what no schema names; that it is not said is more than that it may be
        anything.
        """
        before, after = old.unevaluated, new.unevaluated
        if after is None:
            return ""
        if before is None:
            return f"{where} that no schema names are limited"
        if after.kind == "empty" or (before.kind == "false" != after.kind):
            return ""
        if after.kind == "false" != before.kind or before.kind == "empty":
            return f"{where} that no schema names are limited"
        return self.of(before, after, f"{where} that no schema names")

    # -- arrays -------------------------------------------------------------------------------

    def _arrays(self, old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
        reason = self.of(old.inner, new.inner, f"{where}/items")
        for number in range(max(len(old.parts), len(new.parts))):
            at = f"{where}/items/{number}"
            reason = reason or self._item(old, new, number, at)
        return (
            reason
            or self._additional(old, new, f"{where}: items")
            or self._unevaluated(old, new, f"{where}: items")
            or _upper(old, new, "maxItems", where)
            or _lower(old, new, "minItems", where)
            or _upper(old, new, "maxContains", where)
            or _lower(old, new, "minContains", where)
            or _unique(old, new, where)
        )

    def _item(self, old: JsonSchemaNode, new: JsonSchemaNode, number: int, at: str) -> str:
        before = old.parts[number] if number < len(old.parts) else None
        after = new.parts[number] if number < len(new.parts) else None
        if before is not None and after is not None:
            return self.of(before, after, at)
        if before is not None:
            return self._dropped(before, new.rest, at)
        assert after is not None
        return self._added(old.rest, after, at)


# -- what needs no other schema ------------------------------------------------------------------


def _simple(old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
    if new.kind == "string":
        return (
            _upper(old, new, "maxLength", where)
            or _lower(old, new, "minLength", where)
            or _pattern(old, new, where)
        )
    if new.kind == "number":
        return _numbers(old, new, where)
    if new.kind == "enum":
        values = set(map(written, new.words["enum"]))
        if values.issuperset(map(written, old.words["enum"])):
            return ""
        return f"{where}: enum has lost values"
    if new.kind == "const" and written(old.words["const"]) != written(new.words["const"]):
        return f"{where}: const became another value"
    return ""


def _numbers(old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
    for word in ("maximum", "exclusiveMaximum"):
        if reason := _upper(old, new, word, where):
            return reason
    for word in ("minimum", "exclusiveMinimum"):
        if reason := _lower(old, new, word, where):
            return reason
    before, after = old.words.get("multipleOf"), new.words.get("multipleOf")
    if after is not None and (before is None or Fraction(str(before)) % Fraction(str(after))):
        return f"{where}: multipleOf became {after}"
    if new.words["type"] == "integer" and old.words["type"] == "number":
        return f"{where}: number became integer"
    return ""


def _upper(old: JsonSchemaNode, new: JsonSchemaNode, word: str, where: str) -> str:
    before, after = _bound(old, word), _bound(new, word)
    if after is None or (before is not None and before <= after):
        return ""
    return f"{where}: {word} became {after}"


def _lower(old: JsonSchemaNode, new: JsonSchemaNode, word: str, where: str) -> str:
    before, after = _bound(old, word), _bound(new, word)
    if after is None or (before is not None and before >= after):
        return ""
    return f"{where}: {word} became {after}"


def _bound(node: JsonSchemaNode, word: str) -> float | None:
    """A bound; what draft 4 says of exclusive ones is no number."""
    found = node.words.get(word)
    return None if isinstance(found, bool) else found


def _pattern(old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
    after = new.words.get("pattern")
    if after is None or after == old.words.get("pattern"):
        return ""
    return f"{where}: pattern became {shown(after)}"


def _unique(old: JsonSchemaNode, new: JsonSchemaNode, where: str) -> str:
    before, after = (each.words.get("uniqueItems") is True for each in (old, new))
    return f"{where}: items have to be unique" if after and not before else ""


def _required(node: JsonSchemaNode) -> frozenset[str]:
    found = node.words.get("required", ())
    return frozenset() if isinstance(found, bool) else frozenset(found)


def _has_default(node: JsonSchemaNode) -> bool:
    return "default" in node.words


def _named(node: JsonSchemaNode) -> str:
    return f"{node.kind}Of" if node.kind in COMBINED else node.kind


def _different(parts: list[JsonSchemaNode]) -> list[JsonSchemaNode]:
    """Those that are not written like one before."""
    return list({(each.kind, written(each.words)): each for each in parts}.values())


def _matched(fits: list[list[int]]) -> int:
    """How many can have one of their own, of those that fit each (Kuhn's algorithm)."""
    holder: dict[int, int] = {}

    def takes(one: int, asked: set[int]) -> bool:
        for at in fits[one]:
            if at not in asked:
                asked.add(at)
                if at not in holder or takes(holder[at], asked):
                    holder[at] = one
                    return True
        return False

    return sum(takes(one, set()) for one in range(len(fits)))
