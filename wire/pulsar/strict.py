"""Protobuf parsing, with the checks that its Python runtime leaves to callers.

`FromString` accepts a message without its required fields, and returns text that is not UTF-8 as
bytes.

Invariant: a message returned by `parse` has all required fields, and its texts are `str`; otherwise
`WireError` is raised.
"""

from __future__ import annotations

from typing import Final, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb

Kind = TypeVar("Kind", bound=Message)

WITHOUT_TEXT: Final = frozenset({pb.MessageIdData.DESCRIPTOR.full_name})
"""Messages without strings, which are not checked: there may be thousands in an ACK."""


def parse(kind: type[Kind], data: bytes) -> Kind:
    """Parse a message."""
    try:
        message = kind.FromString(data)
    except DecodeError as error:
        raise WireError(f"not a {kind.DESCRIPTOR.name}: {error}") from error
    if not message.IsInitialized():
        names = message.FindInitializationErrors()  # type: ignore[attr-defined]  # stubs lack it
        missing = ", ".join(names)
        raise WireError(f"a {kind.DESCRIPTOR.name} without {missing}")
    _check_text(message)
    return message


def _check_text(message: Message) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            for text in (value,) if isinstance(value, str | bytes) else value:
                if not isinstance(text, str):
                    raise WireError(f"{field.name} holds text that is not UTF-8")
        elif field.message_type is not None and field.message_type.full_name not in WITHOUT_TEXT:
            for inner in (value,) if isinstance(value, Message) else value:
                _check_text(inner)
