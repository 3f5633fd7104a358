"""The declaration of a policy, and what follows from it. Pure.

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


class Scope(Struct, frozen=True):
    """Where one level, a namespace or a topic, decides a policy."""

    stored: str
    """Its name in the stored record: Pulsar's."""
    path: str | tuple[str, ...] | None = ""
    """The last part of its REST path, or of several; as stored if empty; None if it has paths of
    another form."""
    initial: Any = None
    """What the record holds while nothing is decided."""
    unset: Any = None
    """What GET answers then; None is 204."""
    negative: str = ""
    """Pulsar's sentence for a number below 0."""

    @property
    def paths(self) -> list[str]:
        if isinstance(self.path, tuple):
            return list(self.path)
        return [] if self.path is None else [self.path or self.stored]


class Policy(Struct, frozen=True):
    """One policy: what it is called at each level, what it takes, what it does."""

    effect: str = ""
    """In one line; empty where it has none in this server."""
    topic: Scope | None = None
    namespace: Scope | None = None
    settings: tuple[str, ...] = ()
    """The settings of section `broker` that change the default."""
    configure: Callable[..., Any] = same
    """Derives the default from the values of those settings."""
    name: str = ""
    """That of its field, if it is one."""
    reason: str = ""
    """Why it has no effect."""
    kind: Any = None
    """The type of the JSON value; that of its field, unless tools send another."""
    shape: type[Struct] | None = None
    """What a loose JSON value must be readable as."""
    read: Callable[[Any], Any] = same
    """From JSON value to effective value; None where the value decides nothing."""
    show: Callable[[Any], Any] = same
    """From effective value to JSON value."""
    default: Any = None
    """The value in force where no level decides; that of its field, if it has one."""
    default_shown: bool = True
    """Whether `?applied=true` shows that default."""
    merged: bool = False
    """A table whose keys are decided one by one."""
    per_cluster: bool = False
    """Namespaces store it by cluster, as Pulsar does."""
    loose: bool = False
    """Stored as tools send it: a slip in it does not keep a topic from being loaded."""
    wide: bool = False
    """A number of 64 bits; all others have 32 in Java."""
    signed: bool = False
    """A number that may be negative: that turns something off."""
    plain: bool = False
    """Sent and shown as text, not as JSON."""
    absent: Any = None
    """What a request without a body sets."""

    def decision(self, topic: Struct, namespace: Struct, cluster: str) -> Any:
        """The JSON value of the nearest level that decides; None where none does."""
        own = getattr(topic, self.name, None)
        if own is not None and self.read(own) is not None:
            return own
        value = self.of_cluster(getattr(namespace, self.name, None), cluster)
        return None if value is None or self.read(value) is None else value

    def configured(self, settings: Struct) -> Any:
        """The default, as the settings have it."""
        return self.configure(*(getattr(settings, name) for name in self.settings))

    def of_cluster(self, value: Any, cluster: str) -> Any:
        """What a namespace decides for one cluster."""
        return value.get(cluster) if self.per_cluster and isinstance(value, Mapping) else value

    def in_force(self, broker: Any, topic: Struct, namespace: Struct, cluster: str) -> Any:
        """The effective value."""
        if self.merged:
            decided = [getattr(record, self.name, {}) for record in (namespace, topic)]
            return {**broker, **decided[0], **decided[1]}
        value = self.decision(topic, namespace, cluster)
        return broker if value is None else self.read(value)


class NamespaceRecord(Struct, frozen=True, kw_only=True):
    """What a namespace stores besides its policies."""

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
        """The effective values; the broker's own object where nothing else is decided."""
        changed = {}
        for policy in self.effective:
            default = getattr(broker, policy.name)
            value = policy.in_force(default, topic, namespace, cluster)
            if value != default:
                changed[policy.name] = value
        return replace(broker, **changed) if changed else broker


def _declared(declaration: type[Struct]) -> list[Policy]:
    """The policies that are fields, with what their field says of them."""
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
