"""DescribeClientQuotas and AlterClientQuotas (KIP-546, KIP-612): `kafka-configs` uses them.

`core/quotas/` stores the limits and has their effect. Checks and texts are those of Kafka
(`ClientQuotaControlManager.java`, `ClientQuotasImage.java` of 4.3). Host names in place of
addresses are refused, since they would have to be resolved; so are numbers that are not above 0.

Invariant: an entity whose change is refused has not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.quotas.limits import DEFAULT, Limits, QuotaEntity, QuotaKey
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    INVALID_REQUEST,
    NONE,
    UNSUPPORTED_VERSION,
    KafkaRefusal,
    code_and_message,
)
from magnetar.wire.kafka.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ChangedQuotas,
    ChangeQuotas,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuotas,
    QuotaChange,
    QuotaEntityPart,
    QuotaFilter,
    QuotaValue,
)

if TYPE_CHECKING:
    from magnetar.core.quotas.store import StoredQuotas
    from magnetar.core.quotas.usage import QuotaUsage
    from magnetar.wire.kafka.session.context import Handler, RequestContext

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES: Final = (USER, CLIENT_ID, IP)
"""The types of names, in the order of the fields of `QuotaEntity`."""
EXACT, THE_DEFAULT, ANY = range(3)
NAME_LETTERS_MAX: Final = 1024
OF_CLIENTS: Final = frozenset(QuotaKey) - {QuotaKey.CONNECTIONS}
WHOLE: Final = {
    QuotaKey.PRODUCED_BYTES: (2**63 - 1, "Long"),
    QuotaKey.FETCHED_BYTES: (2**63 - 1, "Long"),
    QuotaKey.CONNECTIONS: (2**31 - 1, "Integer"),
}
"""Quotas that are whole numbers (`QuotaConfigs.java`): the largest, and the type."""
EPSILON: Final = 1e-6

Parts = dict[str, str | None]
"""Names by type; None for the default."""


class EntityFilter(NamedTuple):
    """Which entities are meant."""

    names: Mapping[str, str | None]
    """The name of a type; None for any."""
    strict: bool

    def matches(self, entity: QuotaEntity) -> bool:
        named = {kind: name for kind, name in zip(TYPES, entity, strict=True) if name is not None}
        if self.strict and named.keys() != self.names.keys():
            return False
        return all(
            kind in named and wanted in (None, named[kind]) for kind, wanted in self.names.items()
        )


class QuotaHandlers:
    """See the module's docstring."""

    def __init__(self, usage: QuotaUsage, stored: StoredQuotas) -> None:
        self._usage = usage
        self._stored = stored

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.DESCRIBE_CLIENT_QUOTAS: self.on_describe,
            ApiKey.ALTER_CLIENT_QUOTAS: self.on_alter,
        }

    async def on_describe(
        self, _context: RequestContext, request: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        try:
            wanted = EntityFilter(_filtered(request.components), request.strict)
            await self._stored.settled()
        except (BrokerError, KafkaRefusal) as error:
            code, message = code_and_message(error)
            return DescribeClientQuotasResponse(
                error_code=code, error_message=message, entries=None
            )
        entries = []
        if wanted.names or not request.strict:  # no entity has no type
            async for entity, limits in Cooperative(
                sorted(self._usage.rules.by_entity.items(), key=_place)
            ):
                if wanted.matches(entity):
                    entries.append(_described(entity, limits))
        return DescribeClientQuotasResponse(error_code=NONE, error_message=None, entries=entries)

    async def on_alter(
        self, _context: RequestContext, request: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        times = Counter(_identity(one.entity) for one in request.entries)
        results = []
        async for one in Cooperative(request.entries):
            code, message = NONE, None
            try:
                if times[_identity(one.entity)] > 1:
                    raise KafkaRefusal(INVALID_REQUEST, "Ignoring duplicate entity")
                entity, changes = _checked(one)
                if not request.validate_only:
                    await self._stored.change(entity, changes)
            except (BrokerError, KafkaRefusal) as error:
                code, message = code_and_message(error)
            results.append(ChangedQuotas(error_code=code, error_message=message, entity=one.entity))
        return AlterClientQuotasResponse(entries=results)


def _place(item: tuple[QuotaEntity, Limits]) -> list[tuple[bool, str]]:
    return [(name is not None, name or "") for name in item[0]]


def _identity(parts: Sequence[QuotaEntityPart]) -> Collection[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in parts)


def _filtered(filters: Sequence[QuotaFilter]) -> dict[str, str | None]:
    """The name of each type that is meant; None for any."""
    found: dict[str, str | None] = {}
    for one in filters:
        kind, name = one.entity_type, one.match
        if not kind:
            raise KafkaRefusal(INVALID_REQUEST, "Invalid empty entity type.")
        if kind in found:
            raise KafkaRefusal(
                INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in TYPES:
            raise KafkaRefusal(UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if one.match_type not in (EXACT, THE_DEFAULT, ANY):
            raise KafkaRefusal(INVALID_REQUEST, f"Unknown match type {one.match_type}")
        if (one.match_type == EXACT) != (name is not None):
            raise KafkaRefusal(INVALID_REQUEST, "a name is given for an exact match, and only then")
        found[kind] = DEFAULT if one.match_type == THE_DEFAULT else name
        if name == "":
            found[kind] = "\0"  # nobody is called that
    if IP in found and len(found) > 1:
        raise KafkaRefusal(
            INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )
    return found


def _described(entity: QuotaEntity, limits: Limits) -> DescribedQuotas:
    return DescribedQuotas(
        entity=[
            QuotaEntityPart(entity_type=kind, entity_name=name or None)
            for kind, name in zip(TYPES, entity, strict=True)
            if name is not None
        ],
        values=[QuotaValue(key=key, value=value) for key, value in sorted(limits.items())],
    )


def _checked(change: ChangeQuotas) -> tuple[QuotaEntity, dict[QuotaKey, float | None]]:
    """The entity and its changes; raises `KafkaRefusal`."""
    parts = _parts(change.entity)
    if IP in parts:
        keys: Collection[QuotaKey] = {QuotaKey.CONNECTIONS}
        entity = QuotaEntity(address=_address(parts[IP]))
    else:
        keys = OF_CLIENTS
        user, client = (
            (parts[kind] or DEFAULT) if kind in parts else None for kind in (USER, CLIENT_ID)
        )
        entity = QuotaEntity(user, client)
    return entity, dict(_changes(change.ops, keys))


def _parts(entity: Sequence[QuotaEntityPart]) -> Parts:
    parts: Parts = {}
    for part in entity:
        kind, name = part.entity_type, part.entity_name
        if kind not in TYPES:
            raise KafkaRefusal(INVALID_REQUEST, f"Unhandled client quota entity type: {kind}")
        if kind in parts:
            raise KafkaRefusal(
                INVALID_REQUEST,
                f"Invalid empty client quota entity, duplicate entity entry {kind}",
            )
        if name == "":
            raise KafkaRefusal(INVALID_REQUEST, f"Empty {kind} not supported")
        if name is not None and (len(name) > NAME_LETTERS_MAX or "\0" in name):
            raise KafkaRefusal(INVALID_REQUEST, f"this cannot be the name of a {kind}")
        parts[kind] = name
    if not parts or (IP in parts and len(parts) > 1):
        raise KafkaRefusal(INVALID_REQUEST, "Invalid empty client quota entity")
    return parts


def _address(name: str | None) -> str:
    if name is None:
        return DEFAULT
    try:
        return str(ip_address(name))
    except ValueError:
        raise KafkaRefusal(
            INVALID_REQUEST, f"{name} is not a valid IP or resolvable host."
        ) from None


def _changes(
    ops: Sequence[QuotaChange], keys: Collection[QuotaKey]
) -> Iterator[tuple[QuotaKey, float | None]]:
    seen = set()
    for op in ops:
        if op.key in seen:
            raise KafkaRefusal(
                INVALID_REQUEST,
                f"Duplicate quota key {op.key} not updating quota for this entity",
            )
        seen.add(op.key)
        if op.key not in keys:
            raise KafkaRefusal(INVALID_REQUEST, f"Invalid configuration key {op.key}")
        key = QuotaKey(op.key)
        yield key, None if op.remove else _value(key, op.value)


def _value(key: QuotaKey, value: float) -> float:
    """A valid limit; whole numbers are rounded, as clients send them in binary fractions."""
    if not 0 < value < float("inf"):
        raise KafkaRefusal(INVALID_REQUEST, f"Quota {key} must be greater than 0")
    if key not in WHOLE:
        return value
    largest, kind = WHOLE[key]
    if value > largest:
        raise KafkaRefusal(INVALID_REQUEST, f"Proposed value for {key} is too large for {kind}")
    whole = float(int(value + EPSILON))
    if abs(whole - value) > EPSILON or not whole:
        raise KafkaRefusal(INVALID_REQUEST, f"Configuration {key} must be a {kind} value")
    return whole
