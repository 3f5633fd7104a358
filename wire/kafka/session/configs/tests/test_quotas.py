"""Quotas, as `kafka-configs` asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.quotas.limits import DEFAULT, QuotaEntity
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.quotas import (
    AlterClientQuotasRequest,
    ChangeQuotas,
    DescribeClientQuotasRequest,
    QuotaChange,
    QuotaEntityPart,
    QuotaFilter,
)

EXACT, THE_DEFAULT, ANY = range(3)


def change(
    entity: dict[str, str | None], *, remove: tuple[str, ...] = (), **limits: float
) -> ChangeQuotas:
    return ChangeQuotas(
        entity=[QuotaEntityPart(entity_type=kind, entity_name=entity[kind]) for kind in entity],
        ops=[QuotaChange(key=key, value=limits[key], remove=False) for key in limits]
        + [QuotaChange(key=key, value=0.0, remove=True) for key in remove],
    )


def alter(*changes: ChangeQuotas, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(changes), validate_only=validate_only)


def describe(*filters: tuple[str, int, str | None], strict: bool = False) -> Any:
    components = [
        QuotaFilter(entity_type=kind, match_type=match_type, match=match)
        for kind, match_type, match in filters
    ]
    return DescribeClientQuotasRequest(components=components, strict=strict)


def named(response: Any) -> list[dict[str, str | None]]:
    """The entities of a description."""
    assert response.error_code == 0, response.error_message
    return [{part.entity_type: part.entity_name for part in one.entity} for one in response.entries]


def codes(response: Any) -> list[int]:
    return [one.error_code for one in response.entries]


ALI, ALIS_C, C = {"user": "ali"}, {"user": "ali", "client-id": "c"}, {"client-id": "c"}
USERS: dict[str, str | None] = {"user": None}
ADDRESS = {"ip": "10.0.0.1"}


@pytest.mark.parametrize("version", [0, 1])
async def test_they_are_set_described_and_removed(stage: Stage, version: int) -> None:
    client = await stage.client()
    request = alter(
        change(ALI, producer_byte_rate=1024, request_percentage=12.5),
        change(USERS, consumer_byte_rate=2048),
        change(ADDRESS, connection_creation_rate=3),
    )
    response = await client.exchange(request, version)
    assert codes(response) == [0, 0, 0]
    assert [{part.entity_type: part.entity_name for part in one.entity} for one in response.entries]
    found = await client.exchange(describe(), version)
    assert named(found) == [ADDRESS, USERS, ALI]
    assert {one.key: one.value for one in found.entries[2].values} == {
        "producer_byte_rate": 1024,
        "request_percentage": 12.5,
    }
    removed = alter(
        change(ALI, remove=("producer_byte_rate", "controller_mutation_rate")),
        change(USERS, remove=("consumer_byte_rate",)),
    )
    assert codes(await client.exchange(removed, version)) == [0, 0]
    assert named(await client.exchange(describe(("user", ANY, None)), version)) == [ALI]


async def test_filters(stage: Stage) -> None:
    client = await stage.client()
    entities = (ALI, ALIS_C, C, USERS, ADDRESS)
    for entity in entities:
        key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        assert codes(await client.exchange(alter(change(entity, **{key: 1.0})))) == [0]

    async def found(*filters: Any, strict: bool = False) -> list[Any]:
        return named(await client.exchange(describe(*filters, strict=strict)))

    assert await found() == [ADDRESS, C, USERS, ALI, ALIS_C]
    assert await found(strict=True) == []
    assert await found(("user", EXACT, "ali")) == [ALI, ALIS_C]
    assert await found(("user", EXACT, "ali"), strict=True) == [ALI]
    assert await found(("user", EXACT, "eve")) == []
    assert await found(("user", EXACT, "")) == []
    assert await found(("user", THE_DEFAULT, None)) == [USERS]
    assert await found(("user", ANY, None)) == [USERS, ALI, ALIS_C]
    assert await found(("user", ANY, None), ("client-id", ANY, None)) == [ALIS_C]
    assert await found(("client-id", EXACT, "c"), strict=True) == [C]
    assert await found(("ip", ANY, None)) == [ADDRESS]


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ([("", ANY, None)], errors.INVALID_REQUEST),
        ([("topic", ANY, None)], errors.UNSUPPORTED_VERSION),
        ([("user", 3, None)], errors.INVALID_REQUEST),
        ([("user", EXACT, None)], errors.INVALID_REQUEST),
        ([("user", ANY, "ali")], errors.INVALID_REQUEST),
        ([("user", THE_DEFAULT, "ali")], errors.INVALID_REQUEST),
        ([("user", ANY, None), ("user", ANY, None)], errors.INVALID_REQUEST),
        ([("user", ANY, None), ("ip", ANY, None)], errors.INVALID_REQUEST),
    ],
)
async def test_a_filter_that_is_none(
    stage: Stage, filters: list[tuple[str, int, str | None]], code: int
) -> None:
    client = await stage.client()
    response = await client.exchange(describe(*filters))
    assert (response.error_code, response.entries) == (code, None)
    assert response.error_message


@pytest.mark.parametrize(
    "refused",
    [
        change({}, producer_byte_rate=1),
        change({"topic": "t"}, producer_byte_rate=1),
        change({"user": ""}, producer_byte_rate=1),
        change({"user": "x" * 1025}, producer_byte_rate=1),
        change({"user": "a\0b"}, producer_byte_rate=1),
        change({"user": "ali", "ip": "10.0.0.1"}, connection_creation_rate=1),
        change({"ip": "mq.example.org"}, connection_creation_rate=1),
        change({"ip": "10.0.0.1"}, producer_byte_rate=1),
        change({"ip": "10.0.0.1"}, connection_creation_rate=2**31),
        change(ALI, connection_creation_rate=1),
        change(ALI, bytes=1),
        change(ALI, remove=("bytes",)),
        change(ALI, producer_byte_rate=0),
        change(ALI, producer_byte_rate=-1),
        change(ALI, producer_byte_rate=0.5),
        change(ALI, producer_byte_rate=1e300),
        change(ALI, producer_byte_rate=float("nan")),
        change(ALI, request_percentage=float("inf")),
        change(ALI, request_percentage=-0.1),
        change(ALI, remove=("producer_byte_rate",), producer_byte_rate=1),
        change(ALI, consumer_byte_rate=1, producer_byte_rate=-1),
    ],
)
async def test_a_change_that_is_refused(stage: Stage, refused: ChangeQuotas) -> None:
    client = await stage.client()
    response = await client.exchange(alter(refused, change(C, producer_byte_rate=1)))
    assert codes(response) == [errors.INVALID_REQUEST, 0]
    assert response.entries[0].entity == refused.entity
    assert named(await client.exchange(describe())) == [C], "nothing of it is done"


async def test_an_entity_is_changed_once(stage: Stage) -> None:
    client = await stage.client()
    twice = change(ALI, producer_byte_rate=1), change(ALI, consumer_byte_rate=1)
    assert codes(await client.exchange(alter(*twice))) == [errors.INVALID_REQUEST] * 2
    assert named(await client.exchange(describe())) == []


async def test_validation_alone_changes_nothing(stage: Stage) -> None:
    client = await stage.client()
    request = alter(change(ALI, producer_byte_rate=1), change(C, bytes=1), validate_only=True)
    assert codes(await client.exchange(request)) == [0, errors.INVALID_REQUEST]
    assert named(await client.exchange(describe())) == []


async def test_binary_fractions_of_whole_numbers(stage: Stage) -> None:
    client = await stage.client()
    await client.exchange(alter(change(ALI, producer_byte_rate=1023.9999999)))
    rules = stage.front.services.quotas.rules.by_entity
    assert rules == {QuotaEntity("ali"): {"producer_byte_rate": 1024.0}}


async def test_addresses_have_one_writing(stage: Stage) -> None:
    client = await stage.client()
    request = alter(change({"ip": "2001:DB8:0::1"}, connection_creation_rate=1))
    response = await client.exchange(request)
    assert response.entries[0].entity[0].entity_name == "2001:DB8:0::1", "as it was asked"
    assert named(await client.exchange(describe())) == [{"ip": "2001:db8::1"}]
    everybody: dict[str, str | None] = {"ip": None}
    await client.exchange(alter(change(everybody, connection_creation_rate=1)))
    rules = stage.front.services.quotas.rules.by_entity
    assert QuotaEntity(address=DEFAULT) in rules
