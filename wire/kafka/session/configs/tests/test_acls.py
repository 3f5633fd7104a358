"""Rules of who may do what: none, and said so."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.errors import SECURITY_DISABLED
from magnetar.wire.kafka.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

ANY = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_security_is_off(stage: Stage, version: int) -> None:
    client = await stage.client()
    requested = DescribeAclsRequest(resource_type_filter=1, resource_name_filter=None, **ANY)
    outcomes = await client.exchange(requested, version)
    assert (outcomes.error_code, outcomes.resources) == (SECURITY_DISABLED, [])
    assert outcomes.error_message == "No Authorizer is configured."
    rule = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    outcomes = await client.exchange(CreateAclsRequest(creations=[rule, rule]), version)
    assert [one.error_code for one in outcomes.results] == [SECURITY_DISABLED] * 2
    whatever = DeleteAclsFilter(resource_type_filter=1, resource_name_filter=None, **ANY)
    outcomes = await client.exchange(DeleteAclsRequest(filters=[whatever]), version)
    assert [one.error_code for one in outcomes.filter_results] == [SECURITY_DISABLED]
