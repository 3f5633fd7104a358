"""DescribeAcls, CreateAcls and DeleteAcls (KIP-140, KIP-290).

Rules are stored by `core/security/acl_store.py`, and in force when a change is answered. A server
without authorisation answers SECURITY_DISABLED, as a Kafka broker without an authorizer does
(`AclApis.scala` of 4.3): tools then report that security is off.

Invariant: what is stored is valid (`AclControlManager.validateNewAcl` of 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.core.kernel.names import DEFAULT_NAMESPACE
from magnetar.core.security.acl_store import OPERATIONS, TYPES, change_acls
from magnetar.core.security.acls import EVERYTHING, Acl, Pattern
from magnetar.core.security.actions import CLUSTER_NAME, Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    INVALID_REQUEST,
    NONE,
    SECURITY_DISABLED,
    KafkaRefusal,
    code_and_message,
)
from magnetar.wire.kafka.messages.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    AclResource,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.wire.kafka.session.context import Handler, RequestContext

REASON: Final = "No Authorizer is configured."
ANY, MATCH = 1, 2
"""In place of a type, an operation or a permission, and of a pattern (`PatternType.java`)."""
DENY, ALLOW = 2, 3
NAME_LETTERS_MAX: Final = 1024
"""The longest name, principal or host of a rule."""


class AclFilter(Struct, frozen=True):
    """Which rules are meant (`AclBindingFilter.java`)."""

    kind: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    action: int
    permission: int

    def check(self) -> None:
        """Raise `KafkaRefusal` for a part that nobody knows."""
        for valid in (
            self.kind == ANY or self.kind in TYPES,
            self.pattern in (ANY, MATCH, *Pattern),
            self.action == ANY or self.action in OPERATIONS,
            self.permission in (ANY, DENY, ALLOW),
        ):
            if not valid:
                raise KafkaRefusal(INVALID_REQUEST, "The filter contains UNKNOWN elements.")

    def matches(self, rule: Acl) -> bool:
        return (
            self.kind in (ANY, rule.kind)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.action in (ANY, rule.action)
            and self.permission in (ANY, permission(rule))
        )

    def _matches_name(self, rule: Acl) -> bool:
        if self.pattern not in (ANY, MATCH, rule.pattern):
            return False
        if self.name is None or self.name == rule.name:
            return True
        if self.pattern != MATCH:
            return False
        if rule.pattern is Pattern.LITERAL:
            return rule.name == EVERYTHING
        return self.name.startswith(rule.name)


def permission(rule: Acl) -> int:
    """The number of `AclPermissionType`."""
    return ALLOW if rule.allow else DENY


class AclHandlers:
    """See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DESCRIBE_ACLS: self.on_describe_acls,
            ApiKey.CREATE_ACLS: self.on_create_acls,
            ApiKey.DELETE_ACLS: self.on_delete_acls,
        }

    async def _found(self, wanted: AclFilter) -> list[Acl]:
        """The rules that are meant; raises `KafkaRefusal`."""
        judge = self._broker.access.judge
        if judge is None:
            raise KafkaRefusal(SECURITY_DISABLED, REASON)
        wanted.check()
        await self._broker.rules.settled()
        return [rule for rule in judge.acls.rules if wanted.matches(rule)]

    async def on_describe_acls(
        self, _context: RequestContext, request: DescribeAclsRequest
    ) -> DescribeAclsResponse:
        response = DescribeAclsResponse(error_code=NONE, error_message=None, resources=[])
        try:
            found = await self._found(_filter_of(request))
        except KafkaRefusal as error:
            response.error_code, response.error_message = code_and_message(error)
            return response
        resources: dict[tuple[int, int, str], AclResource] = {}
        for rule in found:
            key = (rule.kind, rule.pattern, rule.name)
            if key not in resources:
                resources[key] = AclResource(
                    resource_type=rule.kind,
                    resource_name=rule.name,
                    pattern_type=rule.pattern,
                    acls=[],
                )
            resources[key].acls.append(
                AclDescription(
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.action,
                    permission_type=permission(rule),
                )
            )
        response.resources = list(resources.values())
        return response

    async def on_create_acls(
        self, _context: RequestContext, request: CreateAclsRequest
    ) -> CreateAclsResponse:
        results, rules = [], []
        for creation in request.creations:
            result = AclCreationResult(error_code=NONE, error_message=None)
            try:
                if self._broker.access.judge is None:
                    raise KafkaRefusal(SECURITY_DISABLED, REASON)
                rules.append(_checked(creation))
            except KafkaRefusal as error:
                result.error_code, result.error_message = code_and_message(error)
            results.append(result)
        await self._change(add=rules)
        return CreateAclsResponse(results=results)

    async def on_delete_acls(
        self, _context: RequestContext, request: DeleteAclsRequest
    ) -> DeleteAclsResponse:
        results, rules = [], []
        for wanted in request.filters:
            result = DeleteAclsFilterResult(error_code=NONE, error_message=None, matching_acls=[])
            try:
                found = await self._found(_filter_of(wanted))
            except KafkaRefusal as error:
                result.error_code, result.error_message = code_and_message(error)
            else:
                result.matching_acls = [_deleted(rule) for rule in found]
                rules += found
            results.append(result)
        await self._change(remove=rules)
        return DeleteAclsResponse(filter_results=results)

    async def _change(self, add: list[Acl] | None = None, remove: list[Acl] | None = None) -> None:
        if add or remove:
            await change_acls(self._broker.metadata, add or (), remove or ())
            await self._broker.rules.settled()


def _filter_of(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        kind=wanted.resource_type_filter,
        name=wanted.resource_name_filter,
        pattern=wanted.pattern_type_filter,
        principal=wanted.principal_filter,
        host=wanted.host_filter,
        action=wanted.operation,
        permission=wanted.permission_type,
    )


FULL_BEGINNINGS: Final = ("persistent://", f"{DEFAULT_NAMESPACE}/")
"""What the shortest name of a topic leaves out (`names.py`)."""


def _checked(creation: AclCreation) -> Acl:
    """The rule to store; raises `KafkaRefusal`."""
    kind, name, principal = creation.resource_type, creation.resource_name, creation.principal
    cluster = kind == ResourceType.CLUSTER
    for wrong, why in (
        (kind not in TYPES, f"Invalid resourceType {kind}"),
        (creation.resource_pattern_type not in tuple(Pattern), "Invalid patternType"),
        (creation.operation not in OPERATIONS, f"Invalid operation {creation.operation}"),
        (creation.permission_type not in (DENY, ALLOW), "Invalid permissionType"),
        (not name, "Invalid empty resource name"),
        (
            cluster and name != CLUSTER_NAME,
            f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}",
        ),
        (":" not in principal, f"Could not parse principal from `{principal}`"),
        (not creation.host, "Host must not be empty"),
        (max(map(len, (name, principal, creation.host))) > NAME_LETTERS_MAX, "Too long a name"),
    ):
        if wrong:
            raise KafkaRefusal(INVALID_REQUEST, why)
    return Acl(
        ResourceType(kind),
        Pattern(creation.resource_pattern_type),
        _shortest(name) if kind == ResourceType.TOPIC else name,
        principal,
        creation.host,
        Action(creation.operation),
        creation.permission_type == ALLOW,
    )


def _shortest(name: str) -> str:
    """The name by which rules know a topic, or the beginning of several: clients may write it in
    full.
    """
    for beginning in FULL_BEGINNINGS:
        name = name.removeprefix(beginning)
    return name


def _deleted(rule: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=NONE,
        error_message=None,
        resource_type=rule.kind,
        resource_name=rule.name,
        pattern_type=rule.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.action,
        permission_type=permission(rule),
    )
