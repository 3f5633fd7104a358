"""DescribeAcls, CreateAcls and DeleteAcls (KIP-140): there are no ACLs, and everything is allowed.

As a Kafka broker without an authorizer, this server answers SECURITY_DISABLED (`AclApis.scala` of
4.3). Tools then report that security is off; without these requests they end with a stack trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import SECURITY_DISABLED
from magnetar.wire.kafka.messages.acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from magnetar.wire.kafka.session.context import Handler, RequestContext

REASON: Final = "No Authorizer is configured."


async def on_describe_acls(
    _context: RequestContext, _request: DescribeAclsRequest
) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=SECURITY_DISABLED, error_message=REASON, resources=[])


async def on_create_acls(
    _context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=SECURITY_DISABLED, error_message=REASON)
    return CreateAclsResponse(results=[refused] * len(request.creations))


async def on_delete_acls(
    _context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=SECURITY_DISABLED, error_message=REASON, matching_acls=[]
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))


HANDLERS: Final[Mapping[int, Handler]] = {
    ApiKey.DESCRIBE_ACLS: on_describe_acls,
    ApiKey.CREATE_ACLS: on_create_acls,
    ApiKey.DELETE_ACLS: on_delete_acls,
}
