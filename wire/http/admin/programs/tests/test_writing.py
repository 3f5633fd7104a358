"""What those hear who write in batches."""

from msgspec.structs import replace

from magnetar.wire.http.tests.visitor import OPTIONS, visiting

HERE = "/admin/v2/writing"


async def test_rows_are_sent_to_the_kafka_listener_as_the_client_reaches_it() -> None:
    async with visiting(replace(OPTIONS, kafka_address="0.0.0.0:9092")) as visitor:
        assert await visitor.get(HERE, headers={"host": "a:8080"}) == {"kafka": "a:9092"}
    async with visiting() as visitor:
        assert await visitor.get(HERE) == {"kafka": ""}
