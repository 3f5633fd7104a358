"""Core is asked about every request, by what it wants and to what."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.errors import Unauthorized
from magnetar.core.security.access import Access
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.conftest import Stage, fetch_request
from magnetar.wire.kafka.messages.configs import DescribeConfigsRequest, DescribeResource
from magnetar.wire.kafka.messages.tests.samples import full, sparse
from magnetar.wire.kafka.session import rights
from magnetar.wire.kafka.session.versions import SERVED


class RecordedAccess(Access):
    """Remembers what it was asked, and may refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, Action, ResourceType, str]] = []
        self.refuses = False

    def check(self, who: str, action: Action, kind: ResourceType, name: str) -> None:
        self.heard.append((who, action, kind, name))
        if self.refuses:
            raise Unauthorized("not for you")


@pytest.mark.parametrize("key", sorted(set(SERVED) - rights.HELLO))
def test_every_request_names_what_it_is_about(key: int) -> None:
    api = APIS[key]
    for version in range(api.request.VERSIONS[0], api.request.VERSIONS[1] + 1):
        access = RecordedAccess()
        rights.check(access, "me", key, full(api.request, version))
        assert access.heard, f"{api.name} {version} is about nothing"
        assert all(who == "me" and name for who, _, _, name in access.heard)
        rights.check(access, "me", key, sparse(api.request, version))


def test_who_says_hello_is_not_asked() -> None:
    assert not rights.HELLO & set(rights.RIGHTS)
    assert rights.HELLO | set(rights.RIGHTS) == set(SERVED)


async def test_what_is_refused_ends_the_connection(stage: Stage) -> None:
    access = stage.broker.access = RecordedAccess()
    client = await stage.client("t")
    await client.fetch("t", 0)
    assert access.heard[-1] == ("", Action.READ, ResourceType.TOPIC, "t")
    access.refuses = True
    client.ask(fetch_request("t", 0), 12)
    assert client.line.ending == "not for you"
    assert client.receive() == []


def test_groups_are_asked_about_as_groups() -> None:
    access = RecordedAccess()
    resources = [
        DescribeResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, "t"), (32, "g"))
    ]
    rights.check(access, "me", 32, DescribeConfigsRequest(resources=resources))
    assert access.heard == [
        ("me", Action.DESCRIBE, ResourceType.TOPIC, "t"),
        ("me", Action.DESCRIBE, ResourceType.GROUP, "g"),
    ]
