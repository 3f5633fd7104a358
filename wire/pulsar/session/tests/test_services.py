"""Connections share their limits, and nothing else."""

from magnetar.wire.pulsar.session.conftest import Stage


async def test_connections_share_their_limits(stage: Stage) -> None:
    one, other = stage.stranger().session, stage.stranger().session
    assert one.looking_up._limit is other.looking_up._limit
    assert one.requests._schedule is other.requests._schedule
    assert one.requests is not other.requests
