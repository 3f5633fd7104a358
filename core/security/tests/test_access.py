"""What fronts ask an access for."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import Unauthenticated, Unauthorized
from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType, subscription_of
from magnetar.core.security.conversation import PLAIN, AuthPeer
from magnetar.core.security.identity import ANYBODY, Identity
from magnetar.core.security.tests.people import guarded

TOPIC = "persistent://public/default/t"


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("kind", ResourceType)
def test_without_mechanisms_everybody_may_do_everything(action: Action, kind: ResourceType) -> None:
    access = Access()
    assert access.mechanisms == {}
    assert access.anonymous() is ANYBODY
    access.check(ANYBODY, action, kind, "x")
    access.check_somewhere(ANYBODY, action, kind)


async def test_who_must_authenticate_does() -> None:
    access = guarded(["root"])
    with pytest.raises(Unauthenticated):
        access.anonymous()
    with pytest.raises(Unauthenticated, match="no authentication by 'GSSAPI'"):
        access.begin("GSSAPI", AuthPeer())
    conversation = access.begin(PLAIN, AuthPeer("1.2.3.4"))
    assert conversation.identity is None
    await conversation.respond(b"\0ali\0secret")
    assert conversation.identity is not None
    assert conversation.identity.name == "ali"


def test_a_refusal_says_who_what_and_where() -> None:
    access = guarded(["root"])
    access.check(Identity("root"), Action.WRITE, ResourceType.TOPIC, TOPIC)
    with pytest.raises(Unauthorized, match=f"^ali may not write topic {TOPIC}$"):
        access.check(Identity("ali"), Action.WRITE, ResourceType.TOPIC, TOPIC)
    name = subscription_of(TOPIC, "s|1")
    with pytest.raises(Unauthorized, match=rf"^ali may not read subscription s\|1 of {TOPIC}$"):
        access.check(Identity("ali"), Action.READ, ResourceType.SUBSCRIPTION, name)
    with pytest.raises(Unauthorized, match=r"^an anonymous client may not write any topic$"):
        access.check_somewhere(ANYBODY, Action.WRITE, ResourceType.TOPIC)
