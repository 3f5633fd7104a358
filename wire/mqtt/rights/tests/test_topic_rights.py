"""The rights to stored topics and the rules for MQTT topics, together."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.policy.values import AuthPolicies
from magnetar.core.security.access import Access
from magnetar.core.security.acls import EVERYTHING, Acl, Acls, Pattern
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.core.security.judge import Judge
from magnetar.core.security.permissions import NamespaceRights
from magnetar.wire.mqtt.rights.acl_file import AclFile
from magnetar.wire.mqtt.rights.topic_rights import Asker, TopicRights

LOG = TopicName.parse("mqtt")
NAMESPACE = NamespaceName.parse("public/default")
RULES = "pattern readwrite d/%u/#\nuser ali\ntopic deny d/ali/secret"


def judge() -> Judge:
    made = Judge(superusers=("root",))
    granted = AuthPolicies(namespace_auth={"bob": ("produce", "consume")})
    made.permissions.namespaces["public/default"] = NamespaceRights(granted)
    made.permissions.admins["public"] = frozenset({"boss"})
    made.acls = Acls(
        [
            Acl(ResourceType.TOPIC, Pattern.LITERAL, "mqtt", "User:eve", EVERYTHING, action, False)
            for action in (Action.READ, Action.WRITE)
        ]
    )
    return made


def may(who: str, filter: str, file: str | None = RULES) -> bool:
    """Whether somebody may read and publish, which these rules do not tell apart."""
    rights = TopicRights(Access(judge=judge()), NAMESPACE, None if file is None else AclFile(file))
    asker = Asker(Identity(who), "c1", "127.0.0.1")
    reads = rights.read_refusal(asker, filter, [LOG]) is None
    if "#" not in filter:
        assert reads is (rights.publish_refusal(asker, filter, LOG) is None)
    return reads


@pytest.mark.parametrize(
    ("who", "filter", "allowed", "without_file"),
    [
        ("ali", "d/ali/x", True, False),
        ("ali", "d/ali/secret", False, False),
        ("ali", "d/ali/#", False, False),
        ("ali", "d/bob/x", False, False),
        ("ali", "persistent://public/default/d/ali/x", True, False),
        ("ali", "persistent://public/default/d/ali/secret", False, False),
        ("bob", "d/ali/secret", True, True),
        ("bob", "#", True, True),
        ("boss", "#", True, True),
        ("eve", "d/eve/x", False, False),
        ("root", "d/ali/secret", True, True),
        ("", "d//x", False, False),
    ],
)
def test_who_may_what(who: str, filter: str, allowed: bool, without_file: bool) -> None:
    assert may(who, filter) is allowed
    assert may(who, filter, file=None) is without_file


def test_a_denial_holds_for_those_who_have_the_stored_topic() -> None:
    assert not may("bob", "d/x", "user bob\ntopic deny d/#")
    assert not may("boss", "#", "pattern deny d/#")
    assert may("root", "d/x", "user root\ntopic deny d/#")


@pytest.mark.parametrize("own", ["", "persistent://public/default/"])
@pytest.mark.parametrize("asked", ["", "persistent://public/default/"])
def test_a_topic_has_two_spellings_and_one_right(own: str, asked: str) -> None:
    """Both in rules and in what is asked for."""
    for filter, denied in (("d/x", True), ("d/+", True), ("d/#", True), ("d/y", False)):
        assert may("bob", asked + filter, f"user bob\ntopic deny {own}d/x") is not denied
        assert may("ali", asked + filter, f"user ali\ntopic {own}d/y") is (filter == "d/y")
    assert may("ali", asked + "#", f"user ali\ntopic {own}#")
    other = f"user bob\ntopic deny persistent://acme/devices/#\nuser ali\ntopic {own}#"
    assert may("bob", asked + "d/x", other)
    assert not may("ali", "persistent://acme/devices/x", other)


def test_topics_of_the_server_have_no_namespace() -> None:
    file = AclFile("user ali\ntopic persistent://public/default/#")
    rights = TopicRights(Access(judge=judge()), NAMESPACE, file)
    assert rights.read_refusal(Asker(Identity("ali"), "c", ""), "$SYS/#", []) is not None


def test_rules_before_the_first_user_are_for_those_who_have_not_authenticated() -> None:
    rights = TopicRights(Access(judge=judge()), NAMESPACE, AclFile("topic read open\nuser ali"))
    for who, allowed in (
        (Identity(""), True),
        (Identity("guest"), True),
        (Identity("guest", method="token"), False),
    ):
        assert (rights.read_refusal(Asker(who, "c", ""), "open", [LOG]) is None) is allowed


def test_topics_of_the_server_are_named_in_a_file() -> None:
    """Without one they are for everybody who has authenticated."""
    for file, allowed in ((None, True), (RULES, False), ("user ali\ntopic read $SYS/#", True)):
        rights = TopicRights(
            Access(judge=judge()), NAMESPACE, None if file is None else AclFile(file)
        )
        asker = Asker(Identity("ali"), "c1", "127.0.0.1")
        assert (rights.read_refusal(asker, "$SYS/#", []) is None) is allowed


def test_shared_subscriptions_are_judged_by_their_filters() -> None:
    assert may("ali", "$share/g/d/ali/x/#")
    assert not may("ali", "$share/g/d/#")


def test_no_judge() -> None:
    rights = TopicRights(Access(), NAMESPACE, None)
    assert rights.generation == 0
    assert rights.read_refusal(Asker(Identity(""), "c", ""), "#", [LOG]) is None


def test_refusals_tell_the_rule() -> None:
    rights = TopicRights(Access(judge=judge()), NAMESPACE, AclFile(RULES))
    asker = Asker(Identity("ali"), "c1", "")
    assert str(rights.publish_refusal(asker, "d/ali/secret", LOG)) == (
        "ali may not write d/ali/secret: line 3 of mqtt.acl_file: topic deny d/ali/secret"
    )
    assert str(rights.publish_refusal(asker, "d/x", LOG)) == (
        "ali may not write d/x, by no rule of mqtt.acl_file"
    )
