"""What connections share has the limits that the options state."""

from magnetar.core.testing.broker import running
from magnetar.wire.http.options import HttpOptions
from magnetar.wire.http.round_trip import HealthCheck
from magnetar.wire.http.services import HttpServices


async def test_limits_are_those_of_the_options() -> None:
    async with running() as broker:
        services = HttpServices(broker, HttpOptions(memory_bytes_max=100_000))
        assert services.memory.bodies.take(100_000, had=0)
        assert not services.memory.bodies.take(1, had=0)
        assert list(services.extra_metrics()) == []


async def test_a_health_check_may_be_shared_with_others() -> None:
    check = HealthCheck()
    async with running() as broker:
        assert HttpServices(broker, HttpOptions(), health=check).health is check
