"""Requests that describe, change and list configs of topics, groups and the broker.

`resources.py` has the kinds of resources, and what a change of each does.

Invariant: each resource of a request is answered once, independently of the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.kernel.cooperation import Cooperative, ListLock
from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka import configs
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.configs import Config, ConfigType
from magnetar.wire.kafka.errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    NONE,
    UNSUPPORTED_VERSION,
    KafkaRefusal,
    code_and_message,
    code_of,
)
from magnetar.wire.kafka.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlterResource,
    ChangeConfig,
    ChangeResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    DescribedSynonym,
    DescribeResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedResource,
)
from magnetar.wire.kafka.session.configs.resources import Change, ConfigResources, Configs, Resource
from magnetar.wire.kafka.session.long_lists import FEW, long_list
from magnetar.wire.kafka.session.shown_configs import FROM_DEFAULT, Shown

if TYPE_CHECKING:
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext

RESOURCES_MAX: Final = 10_000
"""Resources of one request; those beyond are refused."""
LOGGERS, CLIENT_METRICS = 8, 16
"""Resource types of Kafka that this server does not have (KIP-412, KIP-714)."""
KINDS_VERSION: Final = 1
"""Before this version the request lists client metrics only (KIP-1142)."""
SET, REMOVE, APPEND, SUBTRACT = range(4)


class ConfigHandlers:
    """DescribeConfigs, ListConfigResources, AlterConfigs and IncrementalAlterConfigs."""

    def __init__(self, resources: ConfigResources, lists: ListLock) -> None:
        self._resources = resources
        self._lists = lists

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DESCRIBE_CONFIGS: self.on_describe_configs,
            ApiKey.ALTER_CONFIGS: self.on_alter_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self.on_incremental_alter_configs,
            ApiKey.LIST_CONFIG_RESOURCES: self.on_list_config_resources,
        }

    def _resource(self, kind: int, place: int) -> Resource:
        """The type of the resource at an index of a request."""
        if place >= RESOURCES_MAX:
            raise KafkaRefusal(INVALID_REQUEST, f"more than {RESOURCES_MAX} resources are too many")
        found = self._resources.by_type.get(kind)
        if found is None:
            raise KafkaRefusal(INVALID_REQUEST, f"Unsupported resource type: {kind}")
        return found

    async def on_describe_configs(
        self, context: RequestContext, request: DescribeConfigsRequest
    ) -> list[bytes] | None:
        if len(request.resources) <= FEW:
            return await self._all_described(context, request)
        # a request of 150 KB has a response of 25 MB
        with context.caller.wakeup() as wakeup:
            return await self._lists.make(
                context.caller,
                lambda: partial(wakeup.wait, math.inf),
                partial(self._all_described, context, request),
            )

    async def _all_described(
        self, context: RequestContext, request: DescribeConfigsRequest
    ) -> list[bytes]:
        async def described(thing: tuple[int, DescribeResource]) -> DescribedResource:
            return await self._described(context.caller, request, thing)

        things = list(enumerate(request.resources))
        return await long_list(context, DescribeConfigsResponse(results=[]), things, described)

    async def _described(
        self, caller: Caller, request: DescribeConfigsRequest, thing: tuple[int, DescribeResource]
    ) -> DescribedResource:
        place, resource = thing
        resource_response = DescribedResource(
            error_code=NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[],
        )
        keys = resource.configuration_keys
        try:
            known = self._resource(resource.resource_type, place)
            found = await known.show(caller, resource.resource_name)
        except (BrokerError, KafkaRefusal) as error:
            resource_response.error_code, resource_response.error_message = code_and_message(error)
            return resource_response
        resource_response.configs = [
            _described_config(
                request, one, known.table[one.name], read_only=one.name in known.fixed
            )
            for one in found
            if not keys or one.name in keys
        ]
        return resource_response

    async def on_list_config_resources(
        self, context: RequestContext, request: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        known = {*self._resources.by_type, LOGGERS, CLIENT_METRICS}
        kinds = set(request.resource_types) or known
        if context.version < KINDS_VERSION:
            kinds = {CLIENT_METRICS}
        if not kinds <= known:
            return ListConfigResourcesResponse(error_code=UNSUPPORTED_VERSION, config_resources=[])
        try:
            listed = [
                ListedResource(resource_name=name, resource_type=kind)
                for kind in sorted(kinds & set(self._resources.by_type))
                for name in await self._resources.by_type[kind].names()
            ]
        except BrokerError as error:
            return ListConfigResourcesResponse(error_code=code_of(error), config_resources=[])
        return ListConfigResourcesResponse(error_code=NONE, config_resources=listed)

    async def on_alter_configs(
        self, context: RequestContext, request: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        """Replace all configs of a resource: those that the request does not name get their
        defaults. Because of this trap KIP-339 added IncrementalAlterConfigs.
        """

        def anew(known: Resource, resource: AlterResource) -> Change:
            entries = resource.configs
            _check_words([one.name for one in entries], [one.value for one in entries])
            requested = {one.name: one.value for one in entries}
            return lambda _: {
                name: _checked(known, name, value) for name, value in requested.items()
            }

        return AlterConfigsResponse(
            responses=await self._altered(request.resources, anew, request.validate_only)
        )

    async def on_incremental_alter_configs(
        self, context: RequestContext, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        """Change some configs of a resource; the others stay (KIP-339)."""

        def changed(known: Resource, resource: ChangeResource) -> Change:
            return partial(_changed, known, resource.configs)

        return IncrementalAlterConfigsResponse(
            responses=await self._altered(request.resources, changed, request.validate_only)
        )

    async def _altered(
        self,
        resources: Sequence[Any],
        change_of: Callable[[Resource, Any], Change],
        validate_only: bool,
    ) -> list[AlteredResource]:
        response = []
        times = Counter((one.resource_type, one.resource_name) for one in resources)
        async for place, resource in Cooperative(enumerate(resources)):
            kind, name = resource.resource_type, resource.resource_name
            code, message = NONE, None
            try:
                known = self._resource(kind, place)
                if times[kind, name] > 1:
                    raise KafkaRefusal(
                        INVALID_REQUEST, f"{known.kind} {name} is named more than once"
                    )
                change = change_of(known, resource)
                await known.change(name, change, not validate_only)
            except (BrokerError, KafkaRefusal) as error:
                code, message = code_and_message(error)
            response.append(
                AlteredResource(
                    error_code=code, error_message=message, resource_type=kind, resource_name=name
                )
            )
        return response


def _described_config(
    request: DescribeConfigsRequest, shown: Shown, config: Config, *, read_only: bool
) -> DescribedConfig:
    synonyms = []
    if request.include_synonyms:
        synonyms.append(DescribedSynonym(name=shown.name, value=shown.value, source=shown.source))
        if shown.source != FROM_DEFAULT:
            default = config.default
            synonyms.append(DescribedSynonym(name=shown.name, value=default, source=FROM_DEFAULT))
    return DescribedConfig(
        name=shown.name,
        value=shown.value,
        read_only=read_only,
        config_source=shown.source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=config.kind,
        documentation=config.documentation if request.include_documentation else None,
    )


def _check_words(names: Sequence[str], values: Sequence[str | None]) -> None:
    """Raise `KafkaRefusal` for duplicate keys and null values."""
    if len(set(names)) != len(names):
        raise KafkaRefusal(INVALID_REQUEST, "Error due to duplicate config keys")
    if None in values:
        raise KafkaRefusal(
            INVALID_REQUEST, "the operation DELETE removes a config, not a null value"
        )


def _checked(known: Resource, name: str, value: str | None) -> str:
    return configs.check(name, value, known.table, known.kind)


def _changed(known: Resource, changes: Sequence[ChangeConfig], own: Configs) -> Configs:
    values = [change.value for change in changes if change.config_operation != REMOVE]
    _check_words([change.name for change in changes], values)
    for change in changes:
        name, operation = change.name, change.config_operation
        if operation == REMOVE:
            if name not in known.table:
                raise KafkaRefusal(INVALID_CONFIG, f"Unknown {known.kind} config name: {name}")
            own.pop(name, None)
        elif operation == SET:
            own[name] = _checked(known, name, change.value)
        elif operation in (APPEND, SUBTRACT):
            relisted = _relisted(known, own, name, change.value or "", operation)
            own[name] = _checked(known, name, relisted)
        else:
            raise KafkaRefusal(INVALID_REQUEST, f"Unknown operation type {operation}")
    return own


def _relisted(known: Resource, own: Configs, name: str, value: str, operation: int) -> str:
    """The list with the values appended or removed; a value is appended once only."""
    config = known.table.get(name)
    if config is None or config.kind is not ConfigType.LIST:
        raise KafkaRefusal(
            INVALID_CONFIG, f"Config value append is not allowed for config key: {name}"
        )
    present = [one for one in own.get(name, config.default).split(",") if one]
    response = value.split(",")
    if operation == SUBTRACT:
        return ",".join(one for one in present if one not in response)
    return ",".join(present + [one for one in response if one not in present])
