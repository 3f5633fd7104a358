"""What a schema weighs, and the numbers of kinds."""

from magnetar.core.schema.schema import DEFINED_IN_AVRO, WITHOUT, SchemaKind, TopicSchema


def test_size() -> None:
    assert TopicSchema(SchemaKind.AVRO, b"12345", {"a": "bc"}).size == 5 + len('{"a":"bc"}')
    assert TopicSchema(SchemaKind.AVRO, b"", {"a": "\0" * 100}).size > 600  # as JSON has it


def test_numbers_are_those_of_clients() -> None:
    assert [SchemaKind(number).name for number in (1, 2, 4, 15, 20, 21)] == [
        *("STRING", "JSON", "AVRO", "KEY_VALUE", "PROTOBUF_NATIVE", "AUTO_CONSUME")
    ]
    assert not DEFINED_IN_AVRO & WITHOUT
