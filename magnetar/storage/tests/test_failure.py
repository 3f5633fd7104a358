import logging

import pytest
import trio

from magnetar.core.kernel.errors import StorageFailed
from magnetar.storage.failure import ended_by_failure


async def fail_at_once() -> None:
    async with ended_by_failure("gateway") as fail:
        fail("the disk is gone")
        await trio.sleep_forever()


async def test_a_failure_ends_the_block_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL), pytest.raises(ExceptionGroup) as raised:
        await fail_at_once()
    assert raised.group_contains(StorageFailed, match="the disk is gone")
    assert caplog.messages == ["storage failed, this gateway stops: the disk is gone"]


async def test_a_block_without_failure_ends_by_itself() -> None:
    async with ended_by_failure("gateway"):
        pass
