"""Offsets of a committed transaction are stored, whatever comes in between."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.errors import NotCoordinator, Overloaded, StorageFailed
from magnetar.core.testing.client import attached
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.transactions.transaction import TransactionState
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.topics import DeleteTopicsRequest
from magnetar.wire.kafka.session.groups.tests.test_classic import commit
from magnetar.wire.kafka.session.groups.tests.test_offsets import code, loaded
from magnetar.wire.kafka.session.transactions.tests.test_txn_offset_commit import (
    began,
    committed,
    promised,
)


async def test_a_commit_waits_for_consumers_of_pulsars(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """One that came after the offset was accepted; the transaction ends when it has left."""
    one = await began(stage)
    assert await promised(one, 5) == 0
    theirs = await attached(loaded(stage), SubscriptionType.SHARED, subscription="g")
    assert await one.end(commit=True) == 0
    await trio.sleep(60)
    found = stage.front.services.transactions.find("n")
    assert found is not None
    assert found.state is TransactionState.COMMITTING
    assert await committed(one.client, stable=True) == (errors.UNSTABLE_OFFSET_COMMIT, -1)
    loaded(stage).detach(theirs.consumer)
    await trio.sleep(60)
    assert found is not stage.front.services.transactions.find("n")
    assert await committed(one.client, stable=True) == (0, 5)


async def test_a_later_commit_is_not_moved_back(stage: Stage) -> None:
    """The steps after a decision are repeated after a crash, when the group may have gone on."""
    one = await began(stage)
    assert await promised(one, 5) == 0
    found = stage.front.services.transactions.find("n")
    assert found is not None
    assert await one.end(commit=True) == 0
    assert await committed(one.client, stable=True) == (0, 5)
    assert await code(one.client, commit(8)) == 0
    await stage.front.services.commits.commit_pending(found.pending)
    assert await committed(one.client) == (0, 8)


async def test_an_offset_is_stored_however_often_that_fails(
    stage: Stage, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt moves the cursor in memory, which is not enough for the second."""
    one = await began(stage)
    assert await promised(one, 5) == 0
    failures = [Overloaded("too many"), NotCoordinator("another's"), StorageFailed("full")]
    ensure = stage.front.services.group_records.ensure

    async def failing(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        await ensure(*arguments)

    monkeypatch.setattr(stage.front.services.group_records, "ensure", failing)
    assert await one.end(commit=True) == 0
    await trio.sleep(60)
    assert await committed(one.client, stable=True) == (0, 5)


async def test_offsets_of_a_deleted_topic_do_not_hold_a_transaction(
    stage: Stage, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    one = await began(stage)
    assert await promised(one, 5) == 0
    deleted = await one.client.exchange(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1), 4)
    assert deleted.responses[0].error_code == 0
    assert await one.end(commit=True) == 0
    await trio.sleep(60)
    found = stage.front.services.transactions.find("n")
    assert found is not None
    assert found.state is TransactionState.COMMITTED
    assert "dropped" in caplog.text
