"""What those hear who write in batches."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from magnetar.core.entry.kafka import form
from magnetar.core.security.access import Access
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.broker import running
from magnetar.core.transactions.coordinator import TransactionCoordinator
from magnetar.core.transactions.sinks import Sinks
from magnetar.wire.http.admin.programs.writing import TABLE
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

HERE = "/admin/v2/writing"
BATCH = {"sink": "s", "query": "q", "batch": 3}


@asynccontextmanager
async def writing(
    access: Access | None = None,
) -> AsyncIterator[tuple[Visitor, TransactionCoordinator]]:
    async with running() as broker:
        coordinator = TransactionCoordinator(broker, "/transactions", form, never)
        numbers = iter(range(7, 100))

        async def new_writer() -> int:
            return next(numbers)

        sinks = Sinks(broker, "/sinks", coordinator, new_writer, 900_000)
        async with visiting(replace(OPTIONS, sinks=sinks), access=access) as visitor:
            yield visitor, coordinator


async def never(_pending: object) -> None:
    raise AssertionError("nothing is pending")


async def posted(visitor: Visitor, path: str, body: object) -> dict:
    response = await visitor.ask("POST", f"{HERE}/{path}", body)
    assert response.status_code == 200, response.text
    return response.json()


def test_every_path_is_documented() -> None:
    text = (Path(__file__).resolve().parents[5] / "docs/admin.md").read_text(encoding="utf-8")
    documented = set(re.findall(rf"^\| `(GET|POST) {HERE}(/\w+|)[` ]", text, re.MULTILINE))
    assert documented == {(method, path) for method, path, *_ in TABLE}


async def test_rows_are_sent_to_the_kafka_listener_as_the_client_reaches_it() -> None:
    both = {"kafka_address": "0.0.0.0:9092", "kafka_address_tls": "0.0.0.0:9093"}
    async with visiting(replace(OPTIONS, **both)) as visitor:
        found = await visitor.get(HERE, headers={"host": "a:8080"})
        assert found == {"kafka": "a:9092", "kafka_tls": "a:9093"}
    async with visiting() as visitor:
        assert await visitor.get(HERE) == {"kafka": "", "kafka_tls": ""}


async def test_an_attempt_is_committed_with_its_batch() -> None:
    async with writing() as (visitor, coordinator):
        begun = await posted(visitor, "begin", BATCH)
        name = begun.pop("transactional_id")
        assert begun == {"committed": False, "producer_id": 7, "epoch": 0}
        async with coordinator.alone_with(name, settled=True) as slot:
            await coordinator.extend(slot, logs=[])
        await visitor.does("POST", f"{HERE}/renew", BATCH)
        await visitor.does("POST", f"{HERE}/commit", {**BATCH, "attempts": [[7, 0]]})
        assert await posted(visitor, "begin", BATCH) == {"committed": True}
        assert await posted(visitor, "number", BATCH) == {"committed": True}
        await visitor.does("POST", f"{HERE}/forget", BATCH)
        assert list(coordinator.all()) == []


async def test_attempts_are_given_up() -> None:
    async with writing() as (visitor, _):
        await posted(visitor, "begin", BATCH)
        await visitor.does("POST", f"{HERE}/abort", {**BATCH, "attempts": [[7, 0]]})
        commit = {**BATCH, "attempts": [[7, 0]]}
        reason = await visitor.fails(412, "POST", f"{HERE}/commit", commit)
        assert "is to be written again" in reason


async def test_tasks_number_their_rows() -> None:
    async with writing() as (visitor, _):
        found = await posted(visitor, "number", {**BATCH, "task": 1})
        assert found == {"committed": False, "producer_id": 8, "epoch": 3}


@pytest.mark.parametrize(
    "wrong", [{"sink": ""}, {"sink": "s" * 201}, {"batch": -1}, {"timeout_ms": 0}, {"other": 1}]
)
async def test_what_makes_no_sense_is_refused(wrong: dict) -> None:
    async with writing() as (visitor, _):
        await visitor.fails(400, "POST", f"{HERE}/begin", {**BATCH, **wrong})


async def test_without_a_kafka_listener_it_is_said_so() -> None:
    async with visiting() as visitor:
        reason = await visitor.fails(404, "POST", f"{HERE}/begin", BATCH)
        assert reason == "rows are written by Kafka's protocol, and its listener is closed"


async def test_a_sink_is_for_who_writes_to_it() -> None:
    """Another one of that name is another sink: nobody's batch is committed for him."""
    access = guarded()
    assert access.judge is not None
    async with writing(access) as (visitor, _coordinator):
        access.judge.permissions.admins["public"] = frozenset(["ann", "eve"])
        ann, eve = ({"headers": {"authorization": f"Bearer {name}"}} for name in ("ann", "eve"))
        nothing = {**BATCH, "attempts": []}
        await visitor.does("POST", f"{HERE}/commit", nothing, **eve)
        begun = (await visitor.ask("POST", f"{HERE}/begin", BATCH, **ann)).json()
        assert begun["committed"] is False
        begun = (await visitor.ask("POST", f"{HERE}/begin", BATCH, **eve)).json()
        assert begun == {"committed": True}
