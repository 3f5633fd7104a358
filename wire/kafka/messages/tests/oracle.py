"""Values of every message, from its declaration, and what two other codecs make of them.

kio and kafka-python have their own tables of Kafka's messages, so they tell whether ours are right.
kio names and types some fields in its own way: it is compared field by field, in their order.
"""

import dataclasses
import datetime
import enum
import io
import uuid
import warnings
from functools import cache
from importlib import import_module
from typing import Any, get_args

import kio.index
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from magnetar.wire.kafka.apis import APIS, Api
from magnetar.wire.kafka.codec.declare import Field, FieldType, Message, fields_of
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.tests.samples import full, sparse

INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TIMES = st.integers(1, 2**30)
"""kio makes dates and durations of them, which have narrower bounds."""
TEXTS = st.one_of(st.text(max_size=4), st.just("é" * 64), st.just("x" * 9000))
BLOBS = st.one_of(st.binary(max_size=4), st.just(b"\0" * 127), st.just(b"r" * 20000))
FEW = settings(
    max_examples=4,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

with warnings.catch_warnings(action="ignore"):
    KAFKA_PYTHON = [
        import_module(f"kafka.protocol.{part}")
        for part in ("admin", "consumer", "metadata", "producer", "sasl")
    ]


# -- values ------------------------------------------------------------------------------------


@cache
def values(message: type[Message], version: int) -> SearchStrategy[Any]:
    """Messages that this version can say; only tagged fields are left to their defaults."""
    there = [field for field in fields_of(message) if field.is_in(version)]
    given = {field.name: _value(field, version) for field in there}
    return st.builds(message, **given)


def _value(field: Field, version: int) -> SearchStrategy[Any]:
    one = _one(field, version)
    if field.array:
        one = st.lists(one, max_size=3)
    if field.tag is not None:
        return one if field.default is None else st.one_of(st.just(field.default), one)
    return st.one_of(st.none(), one) if field.may_be_null(version) else one


def _one(field: Field, version: int) -> SearchStrategy[Any]:
    if not isinstance(field.kind, FieldType):
        return values(field.kind, version)
    if field.name.endswith("error_code"):
        return st.sampled_from([code.value for code in ErrorCode])
    kind = field.kind.name
    if kind in INTEGERS and ("ms" in field.name.split("_") or "time" in field.name):
        return TIMES
    if kind in INTEGERS:
        half = 1 << (INTEGERS[kind] - 1)
        return st.integers(-half, half - 1)
    return {
        "uint16": st.integers(0, 65_535),
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": TEXTS,
        "bytes": BLOBS,
        "view": BLOBS,
        "pieces": BLOBS,
    }[kind]


# -- all versions ------------------------------------------------------------------------------


def versions_of(module: Any) -> list[Any]:
    """Every version of every request and response in a module, as arguments of a test."""
    return [
        (api, side, version)
        for api in APIS.values()
        if api.request.__module__ == module.__name__
        for side in (api.request, api.response)
        for version in range(api.request.VERSIONS[0], api.request.VERSIONS[1] + 1)
    ]


def name_of(argument: Any) -> str:
    """What pytest calls one argument."""
    return "" if isinstance(argument, Api) else getattr(argument, "__name__", f"v{argument}")


def check(api: Api, side: type[Message], version: int) -> None:
    """Both oracles read and write this version as we do."""
    schema = _kio_schema(api, side, version)
    compare_nulls_with_kio(schema, side, version)
    flexible = api.is_flexible(version)
    encode, decode = encoder(side, version, flexible), decoder(side, version, flexible)

    @FEW
    @example(full(side, version))
    @example(sparse(side, version))
    @given(values(side, version))
    def compare(value: Message) -> None:
        data = b"".join(encode(value))
        assert decode(data, 0) == (value, len(data))
        compare_with_kio(schema, value, data, version)
        compare_with_kafka_python(side, value, data, version)

    compare()


# -- ours --------------------------------------------------------------------------------------


def _in_order(value: Any, version: int) -> Any:
    """All fields of a message as a list, all messages in it too."""
    if isinstance(value, list):
        return [_in_order(each, version) for each in value]
    if isinstance(value, Message):
        there = [field.name for field in fields_of(type(value)) if field.is_in(version)]
        return [_in_order(getattr(value, name), version) for name in there]
    return value


def _spelled_out(value: Any) -> Any:
    """The same message with defaults for tagged structures that were left out, as kio reads it."""
    if isinstance(value, list):
        return [_spelled_out(each) for each in value]
    if not isinstance(value, Message):
        return value
    found = {field.name: getattr(value, field.name) for field in fields_of(type(value))}
    for field in fields_of(type(value)):
        structure = not isinstance(field.kind, FieldType) and not field.array
        if structure and field.tag is not None and found[field.name] is None:
            found[field.name] = field.kind()
    return type(value)(**{name: _spelled_out(each) for name, each in found.items()})


# -- kio ---------------------------------------------------------------------------------------


def _kio_schema(api: Api, side: type[Message], version: int) -> Any:
    load = kio.index.load_request_schema if side is api.request else kio.index.load_response_schema
    return load(api.request.KEY, version)


def compare_with_kio(schema: Any, value: Message, data: bytes, version: int) -> None:
    theirs, size = entity_reader(schema)(data, 0)
    assert size == len(data)
    assert _of_kio(theirs) == _in_order(_spelled_out(value), version)
    written = io.BytesIO()
    entity_writer(schema)(written, theirs)
    assert written.getvalue() == data


def _of_kio(value: Any) -> Any:
    """The same list of plain values, from what kio has read."""
    if dataclasses.is_dataclass(value):
        there = dataclasses.fields(value)
        found = [_uuid_or(_is_uuid(field), getattr(value, field.name)) for field in there]
        return [_of_kio(each) for each in found]
    if isinstance(value, tuple):
        return [_of_kio(each) for each in value]
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return value


def _is_uuid(field: dataclasses.Field[Any]) -> bool:
    return field.metadata.get("kafka_type") == "uuid"


def _uuid_or(is_uuid: bool, value: Any) -> Any:
    """The id that is all zeros may be None there."""
    return bytes(16) if is_uuid and value is None else value


def compare_nulls_with_kio(schema: Any, message: type[Message], version: int) -> None:
    """Whether something may be null shows in no value that we make: kio's types tell."""
    ours = [field for field in fields_of(message) if field.is_in(version)]
    for field, theirs in zip(ours, dataclasses.fields(schema), strict=True):
        structure = not isinstance(field.kind, FieldType)
        if _has_size(field) or (structure and field.tag is None):
            assert field.may_be_null(version) == (type(None) in get_args(theirs.type)), field.name
        if structure:
            compare_nulls_with_kio(_structure_in(theirs.type), field.kind, version)


def _has_size(field: Field) -> bool:
    return field.array or (isinstance(field.kind, FieldType) and not field.kind.layout)


def _structure_in(kind: Any) -> Any:
    """The structure that an array is made of, or that may be null."""
    if dataclasses.is_dataclass(kind):
        return kind
    return next(filter(None, map(_structure_in, get_args(kind))), None)


# -- kafka-python ------------------------------------------------------------------------------


@cache
def _kafka_python(name: str) -> Any:
    """Its class of that name; it has not all of them.

    Its ApiVersionsResponse reads on as version 0 if there is an error, so it proves nothing here.
    """
    if name == "ApiVersionsResponse":
        return None
    found = [getattr(module, name) for module in KAFKA_PYTHON if hasattr(module, name)]
    return found[0] if found else None


def compare_with_kafka_python(
    side: type[Message], value: Message, data: bytes, version: int
) -> None:
    theirs = _kafka_python(side.__name__)
    if theirs is None:
        return
    read = theirs.decode(data, version=version)
    assert _of_kafka_python(read, version) == _in_order(value, version)
    read._header = None
    assert read.encode(version=version) == data


def _of_kafka_python(value: Any, version: int) -> Any:
    if hasattr(value, "_struct"):
        there = [field for field in value._struct._fields if field.for_version_q(version)]
        found = [(field, getattr(value, field.name)) for field in there]
        return [_of_kafka_python(_number_or(*pair), version) for pair in found]
    if isinstance(value, list):
        return [_of_kafka_python(each, version) for each in value]
    if isinstance(value, set):
        bits = sum(1 << bit for bit in value)
        return bits - 2**32 if 31 in value else bits
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def _number_or(field: Any, value: Any) -> Any:
    """To kafka-python ids that are all zeros are None, and so are operations that nobody tells."""
    if value is None and field.name.endswith("authorized_operations"):
        return -(2**31)
    return _uuid_or(field.type_str == "uuid", value)
