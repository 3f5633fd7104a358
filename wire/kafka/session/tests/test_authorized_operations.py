"""What a client may do with a resource, as bits."""

from __future__ import annotations

from typing import Any

from magnetar.core.security.acls import Acl, Acls, Pattern
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.security.identity import Identity
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.line import Line
from magnetar.wire.kafka.addresses import Endpoint
from magnetar.wire.kafka.session.authorized_operations import operations
from magnetar.wire.kafka.session.context import Caller


def test_implied_operations_are_among_them() -> None:
    access, line = guarded(["root"]), Line()
    connection: Any = line
    caller = Caller(connection, Endpoint("mq", 9092), "kafka", access)
    caller.identity = Identity("ali")
    assert access.judge is not None
    rule = Acl(ResourceType.GROUP, Pattern.LITERAL, "g", "User:ali", "*", Action.READ, True)
    access.judge.acls = Acls([rule])
    assert operations(caller, ResourceType.GROUP, "g") == 1 << Action.READ | 1 << Action.DESCRIBE
    assert operations(caller, ResourceType.TOPIC, "t") == 0
    caller.identity = Identity("root")
    assert operations(caller, ResourceType.GROUP, "g") == 1 << 3 | 1 << 6 | 1 << 8
