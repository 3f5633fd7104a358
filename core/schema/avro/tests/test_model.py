"""The limits of a comparison."""

import pytest

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.avro.model import AvroNode, Effort


def test_names() -> None:
    node = AvroNode("record")
    node.full_name = "a.b.R"
    assert node.name == "R"
    assert AvroNode("int").full_name == "int"


def test_steps() -> None:
    effort = Effort(steps_max=2)
    for _ in range(2):
        with effort:
            pass
    with pytest.raises(IncompatibleSchema, match="too large"), effort:
        pass


def test_depth_comes_back() -> None:
    effort = Effort(depth_max=1)
    for _ in range(3):
        with effort:
            pass
    with effort, pytest.raises(IncompatibleSchema, match="too many steps"), effort:
        pass
