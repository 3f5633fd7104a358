"""Numbers, truths and times, as Pulsar's own client for Python writes them where it has them."""

import struct

import pyarrow as pa
import pytest
from pulsar import schema as pulsar_schema

from magnetar.core.entry.columns.columns import MS_MAX
from magnetar.spark_connector.values.misfit import Misfit
from magnetar.spark_connector.values.plain_decoder import KINDS, arrow_type, decoder_of


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_each_kind_fit_its_type(kind: str) -> None:
    layout, _ = KINDS[kind]
    decode, numbers = decoder_of(kind), [0, 1, 100]
    found = [decode(struct.pack(layout, number)) for number in numbers]
    array = pa.array(found, type=arrow_type(kind))
    array.validate(full=True)
    assert array.cast(pa.int64()).to_pylist()[1] == (1000 if "timestamp" in str(array.type) else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_another_size_is_a_misfit(kind: str) -> None:
    with pytest.raises(Misfit, match=f"it has 3 bytes, and {kind} has"):
        decoder_of(kind)(b"abc")


def test_a_time_that_spark_has_not() -> None:
    assert decoder_of("TIMESTAMP")(struct.pack(">q", MS_MAX)) == MS_MAX * 1000
    with pytest.raises(Misfit, match="too far from 1970"):
        decoder_of("TIMESTAMP")(struct.pack(">q", -MS_MAX - 1))


def test_the_client_for_python_knows_the_same_text() -> None:
    assert pulsar_schema.StringSchema().encode("é") == "é".encode()
