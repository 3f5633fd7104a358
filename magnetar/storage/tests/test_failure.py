import logging

import pytest
import trio

from magnetar.core.kernel.errors import StorageFailed
from magnetar.storage.failure import StorageEnded, ended_by_failure, is_told


async def fail_at_once() -> None:
    async with ended_by_failure("gateway") as fail:
        fail("the disk is gone")
        await trio.sleep_forever()


async def test_a_failure_ends_the_block_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL), pytest.raises(ExceptionGroup) as raised:
        await fail_at_once()
    assert raised.group_contains(StorageEnded, match="the disk is gone")
    assert is_told(raised.value)
    assert caplog.messages == ["storage failed, this gateway stops: the disk is gone"]


def test_what_came_of_it_is_not_told_and_our_own_mistakes_are() -> None:
    ended, consequence = StorageEnded("gone"), StorageFailed("not saved")
    assert is_told(ExceptionGroup("", [ended, ExceptionGroup("", [consequence])]))
    assert not is_told(consequence)
    assert not is_told(ExceptionGroup("", [ended, ValueError("ours")]))


async def test_a_block_without_failure_ends_by_itself() -> None:
    async with ended_by_failure("gateway"):
        pass
