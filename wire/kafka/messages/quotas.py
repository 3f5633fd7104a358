"""The messages of DescribeClientQuotas and AlterClientQuotas (KIP-546)."""

from __future__ import annotations

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.codec.declare import (
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Message,
    Request,
    Response,
    String,
)


class QuotaFilter(Message):
    """Which names of one type are meant: one (0), the default (1), or any (2)."""

    entity_type: String
    match_type: Int8
    match: String | None


class DescribeClientQuotasRequest(Request):
    """Lists the quotas that match all filters; strict: of entities with these types only."""

    KEY = ApiKey.DESCRIBE_CLIENT_QUOTAS
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    components: list[QuotaFilter]
    strict: Bool


class QuotaEntityPart(Message):
    """A type and a name of an entity; null is the default."""

    entity_type: String
    entity_name: String | None


class QuotaValue(Message):
    """One quota."""

    key: String
    value: Float64


class DescribedQuotas(Message):
    """The quotas of one entity."""

    entity: list[QuotaEntityPart]
    values: list[QuotaValue]


class DescribeClientQuotasResponse(Response):
    """The quotas of each entity; null beside an error."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    entries: list[DescribedQuotas] | None


class QuotaChange(Message):
    """Sets or removes one quota."""

    key: String
    value: Float64
    remove: Bool


class ChangeQuotas(Message):
    """The changes of one entity."""

    entity: list[QuotaEntityPart]
    ops: list[QuotaChange]


class AlterClientQuotasRequest(Request):
    """Changes quotas; the others of an entity stay."""

    KEY = ApiKey.ALTER_CLIENT_QUOTAS
    VERSIONS = (0, 1)
    FLEXIBLE = 1

    entries: list[ChangeQuotas]
    validate_only: Bool


class ChangedQuotas(Message):
    """The result of one entity."""

    error_code: Int16
    error_message: String | None
    entity: list[QuotaEntityPart]


class AlterClientQuotasResponse(Response):
    """The result of each entity."""

    throttle_time_ms: Int32 = 0
    entries: list[ChangedQuotas]
