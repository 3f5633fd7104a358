"""The messages of DescribeAcls, CreateAcls and DeleteAcls (KIP-140)."""

from __future__ import annotations

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import Int8, Int16, Int32, Message, Request, Response, String

LITERAL = 3
"""The pattern type of ACLs for one exact name (KIP-290)."""


class DescribeAclsRequest(Request):
    """Lists the ACLs that match a filter."""

    KEY = ApiKey.DESCRIBE_ACLS
    VERSIONS = (1, 3)
    FLEXIBLE = 2

    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = LITERAL
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class AclDescription(Message):
    """One ACL of a resource: principal, host, operation, permission."""

    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class AclResource(Message):
    """The ACLs of one resource."""

    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = LITERAL
    acls: list[AclDescription]


class DescribeAclsResponse(Response):
    """The ACLs that match the filter."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    resources: list[AclResource]


class AclCreation(Message):
    """An ACL to create."""

    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = LITERAL
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Request):
    """Creates ACLs."""

    KEY = ApiKey.CREATE_ACLS
    VERSIONS = (1, 3)
    FLEXIBLE = 2

    creations: list[AclCreation]


class AclCreationResult(Message):
    """The result of one creation, in the order of the request."""

    error_code: Int16
    error_message: String | None


class CreateAclsResponse(Response):
    """The result of each creation."""

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult]


class DeleteAclsFilter(Message):
    """A filter for ACLs to delete."""

    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = LITERAL
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Request):
    """Deletes the ACLs that match the filters."""

    KEY = ApiKey.DELETE_ACLS
    VERSIONS = (1, 3)
    FLEXIBLE = 2

    filters: list[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Message):
    """A deleted ACL."""

    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = LITERAL
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Message):
    """The ACLs that one filter deleted."""

    error_code: Int16
    error_message: String | None
    matching_acls: list[DeleteAclsMatchingAcl]


class DeleteAclsResponse(Response):
    """The result of each filter."""

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult]
