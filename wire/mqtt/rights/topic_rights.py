"""What MQTT's clients may publish and read: their rights to the topics that store the messages, and
the rules of `mqtt.acl_file` for MQTT topics, by which devices that share a stored topic are apart.

    1  a superuser may do everything
    2  an ACL of the stored topic that denies, denies
    3  a rule that denies, denies
    4  a rule that allows, or any right to the stored topic, allows

Without a file only the rights to the stored topic count. Without authorisation everything is
allowed.

Invariant: the same MQTT topic, whether it names its namespace or not, is judged by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import Unauthorized
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.core.security.judge import Judge
from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.mapping.names import is_explicit
from magnetar.wire.mqtt.rights.acl_file import AclFile, RuledClient, RuledFilter, TopicAccess

TOPIC: Final = ResourceType.TOPIC
ACCESS: Final = {Action.READ: TopicAccess.READ, Action.WRITE: TopicAccess.WRITE}


class Asker(Struct, frozen=True):
    """Who wants to publish or read."""

    identity: Identity
    client_id: str
    host: str


class TopicRights:
    """See the module's docstring."""

    def __init__(self, access: Access, namespace: NamespaceName, file: AclFile | None) -> None:
        self._access = access
        self._own = f"persistent://{namespace}/"
        self._file = file

    @property
    def generation(self) -> int:
        """Changes when any of the rules does; 0 if everything is allowed."""
        judge = self._access.judge
        return 0 if judge is None else judge.generation

    def publish_refusal(self, asker: Asker, topic: str, name: TopicName) -> Unauthorized | None:
        """Why a client may not publish to an MQTT topic that `name` stores; None if it may."""
        refusal = self._refusal(asker, Action.WRITE, topic, [name])
        if refusal is not None:
            self._denied(asker, Action.WRITE, topic)
        return refusal

    def check_subscription(self, asker: Asker, filter: str, names: Iterable[TopicName]) -> None:
        """Raise `Unauthorized` unless a client may subscribe to a filter."""
        refusal = self.read_refusal(asker, filter, names)
        if refusal is not None:
            self._denied(asker, Action.READ, filter)
            raise refusal

    def _denied(self, asker: Asker, action: Action, filter: str) -> None:
        self._access.denied(asker.identity, asker.host, action, f"MQTT topic {filter}")

    def read_refusal(
        self, asker: Asker, filter: str, names: Iterable[TopicName]
    ) -> Unauthorized | None:
        """Why a client may not read what a filter matches in stored topics; None if it may."""
        shared = topics.shared(filter)
        return self._refusal(asker, Action.READ, shared.filter if shared else filter, names)

    def _refusal(
        self, asker: Asker, action: Action, filter: str, names: Iterable[TopicName]
    ) -> Unauthorized | None:
        judge, who = self._access.judge, asker.identity
        if judge is None or judge.is_superuser(who):
            return None
        is_granted = False
        if self._file is not None:
            users = who.roles if who.name else ()
            client = RuledClient(users, asker.client_id, is_anonymous=not who.method)
            ruling = self._file.rules.ruling(client, ACCESS[action], self._spelled(filter))
            if ruling is not None and not ruling.allowed:
                return Unauthorized(
                    f"{_named(asker)} may not {action.words} {filter}: {ruling.rule}"
                )
            is_granted = ruling is not None
        for name in names:
            refused = self._refused_by_core(judge, asker, action, name, is_granted=is_granted)
            if refused:
                what = refused if self._file is None else f"{filter}, by no rule of mqtt.acl_file"
                return Unauthorized(f"{_named(asker)} may not {action.words} {what}")
        if topics.is_sys(filter) and self._file is not None and not is_granted:
            return Unauthorized(f"{_named(asker)} may not {action.words} {filter}")
        return None

    def _refused_by_core(
        self, judge: Judge, asker: Asker, action: Action, name: TopicName, *, is_granted: bool
    ) -> str:
        """What the client may not use of the topic that stores messages; empty if it may."""
        who, full, host = asker.identity, name.base.full, asker.host
        if judge.allows(who, action, TOPIC, full, host):
            return ""
        if is_granted and judge.denial(who, action, TOPIC, full, host) is None:
            return ""
        return f"topic {full}"

    def _spelled(self, filter: str) -> RuledFilter:
        """A filter without and with the name of its namespace, if that is the listener's own."""
        if filter.startswith(self._own):
            return RuledFilter(filter.removeprefix(self._own), filter)
        if is_explicit(filter) or topics.is_sys(filter):
            return RuledFilter(filter, filter)
        return RuledFilter(filter, self._own + filter)


def _named(asker: Asker) -> str:
    return asker.identity.name or "an anonymous client"
