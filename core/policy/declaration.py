"""The declaration of a policy, and everything derived from it. Pure.

A policy is declared once: as a field of a Struct of effective values, annotated with a `Policy`, or
among the Struct's `STORED` where it has no effect here. `Levels` derives the rest: the records in
which namespaces and topics decide policies, and the values in force. REST, settings and
documentation read the same declarations.

Invariant: the nearest level that decides wins: the topic, then its namespace, then the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from magnetar.core.policy.values import AuthPolicies, Bundles

Value = TypeVar("Value")
Declared = TypeVar("Declared", bound=Struct)


def same(value: Value) -> Value:
    return value


def _nothing(_namespace: Any) -> None:
    """The `older` value of most policies."""


class Scope(Struct, frozen=True):
    """How one level, a namespace or a topic, stores and serves a policy."""

    stored: str
    """Its name in the stored record, which is Pulsar's."""
    path: str | tuple[str, ...] | None = ""
    """The last part of its REST path, or of several paths; empty for the stored name; None for
    paths of another form."""
    initial: Any = None
    """The value in the record while the level does not decide it."""
    unset: Any = None
    """The answer of GET then; None for 204."""
    negative: str = ""
    """Pulsar's error message for a negative number."""

    @property
    def paths(self) -> list[str]:
        if isinstance(self.path, tuple):
            return list(self.path)
        return [] if self.path is None else [self.path or self.stored]


class Policy(Struct, frozen=True):
    """One policy: its names, values and effect."""

    effect: str = ""
    """The effect in one line; empty if it has none in this server."""
    topic: Scope | None = None
    namespace: Scope | None = None
    settings: tuple[str, ...] = ()
    """The settings of section `broker` that change the default."""
    configure: Callable[..., Any] = same
    """Derives the default from the values of those settings."""
    name: str = ""
    """Its name; that of its field, if it is one."""
    reason: str = ""
    """Why it has no effect, if it has none."""
    kind: Any = None
    """The type of the JSON value; that of its field, unless tools send another."""
    shape: type[Struct] | None = None
    """The type as which a loose JSON value must be readable."""
    complete: bool = False
    """Whether `shape` has all fields: others that tools send are not stored, and those that they
    leave out are, with their defaults."""
    read: Callable[[Any], Any] = same
    """Converts a JSON value to the effective value; None if it decides nothing."""
    show: Callable[[Any], Any] = same
    """Converts an effective value to its JSON value."""
    older: Callable[[Any], Any] = _nothing
    """The JSON value that a namespace decides by another policy, which its tools had before."""
    default: Any = None
    """The effective value if no level decides; that of its field, if it is one."""
    default_shown: bool = True
    """Whether `?applied=true` shows that default."""
    merged: bool = False
    """Whether it is a table whose keys are decided one by one."""
    per_cluster: bool = False
    """Whether namespaces store it by cluster, as Pulsar does."""
    loose: bool = False
    """Whether it is stored as tools send it; an invalid value does not prevent loading a topic."""
    wide: bool = False
    """Whether it is a number of 64 bits; other numbers have 32 in Java."""
    signed: bool = False
    """Whether a negative number is valid, which disables something."""
    plain: bool = False
    """Whether it is sent and shown as text, not as JSON."""
    absent: Any = None
    """The value that a request without a body sets."""

    def decision(self, topic: Struct, namespace: Struct, cluster: str) -> Any:
        """The JSON value of the nearest level that decides it; None if none does."""
        own = getattr(topic, self.name, None)
        if own is not None and self.read(own) is not None:
            return own
        for value in (getattr(namespace, self.name, None), self.older(namespace)):
            value = self.of_cluster(value, cluster)
            if value is not None and self.read(value) is not None:
                return value
        return None

    def configured(self, settings: Struct) -> Any:
        """The default under these settings."""
        return self.configure(*(getattr(settings, name) for name in self.settings))

    def of_cluster(self, value: Any, cluster: str) -> Any:
        """The value of a namespace for one cluster."""
        return value.get(cluster) if self.per_cluster and isinstance(value, Mapping) else value

    def in_force(self, broker: Any, topic: Struct, namespace: Struct, cluster: str) -> Any:
        """The effective value."""
        if self.merged:
            decided = [getattr(record, self.name, {}) for record in (namespace, topic)]
            return {**broker, **decided[0], **decided[1]}
        value = self.decision(topic, namespace, cluster)
        return broker if value is None else self.read(value)


class NamespaceRecord(Struct, frozen=True, kw_only=True):
    """The fields of a namespace's record besides its policies."""

    auth_policies: AuthPolicies = AuthPolicies()
    bundles: Bundles = Bundles()
    properties: dict[str, str] = {}


class Levels:
    """All policies of a declaration, and the records in which the levels decide them."""

    def __init__(self, declaration: type[Struct]) -> None:
        self.effective: Final = tuple(_declared(declaration))
        stored: tuple[Policy, ...] = getattr(declaration, "STORED", ())
        self.policies: Final = self.effective + stored
        self.topic: Final = _record("TopicPolicies", self.policies, "topic", Struct)
        self.namespace: Final = _record(
            "NamespacePolicies", self.policies, "namespace", NamespaceRecord
        )

    def at(self, level: str) -> list[tuple[Policy, Scope]]:
        """The policies that `topic` or `namespace` may decide."""
        scopes = [(policy, getattr(policy, level)) for policy in self.policies]
        return [(policy, scope) for policy, scope in scopes if scope is not None]

    def in_force(
        self, broker: Declared, namespace: Struct, topic: Struct, cluster: str
    ) -> Declared:
        """The effective values; the broker's own object if no other level decides anything."""
        changed = {}
        for policy in self.effective:
            default = getattr(broker, policy.name)
            value = policy.in_force(default, topic, namespace, cluster)
            if value != default:
                changed[policy.name] = value
        return replace(broker, **changed) if changed else broker


def _declared(declaration: type[Struct]) -> list[Policy]:
    """The policies that are fields, completed from their fields."""
    found = []
    default = declaration()
    for one in fields(declaration):
        kind, policy = get_args(one.type)
        assert isinstance(policy, Policy), one.name
        value = getattr(default, one.name)
        found.append(replace(policy, name=one.name, kind=policy.kind or kind, default=value))
    return found


def _record(name: str, policies: tuple[Policy, ...], level: str, base: type[Struct]) -> Any:
    rows: list[Any] = []
    names = {}
    for policy in policies:
        scope: Scope | None = getattr(policy, level)
        if scope is None:
            continue
        names[policy.name] = scope.stored
        kind = Any if policy.loose else policy.kind | None
        rows.append((policy.name, kind, scope.initial))
    return msgspec.defstruct(
        name,
        rows,
        bases=(base,),
        rename=names,
        module=__name__,
        frozen=True,
        kw_only=True,
        omit_defaults=level == "topic",
    )


@lru_cache(maxsize=16)
def levels_of(declaration: type[Struct]) -> Levels:
    """The levels of a declaration: derived once."""
    return Levels(declaration)
