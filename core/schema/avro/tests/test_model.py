"""Names of types."""

from magnetar.core.schema.avro.model import AvroNode


def test_names() -> None:
    node = AvroNode("record")
    node.full_name = "a.b.R"
    assert node.name == "R"
    assert AvroNode("int").full_name == "int"
