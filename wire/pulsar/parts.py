"""Decoding of parts that several commands share, from protobuf to values. Pure.

Invariant: no protobuf object leaves, and no call takes more than linear time in its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import pack
from typing import Final, Protocol

from magnetar.core.kernel.errors import WireError
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import values


def signed(number: int) -> int:
    """An uint64 as the signed number that Java's clients mean."""
    return number - (1 << 64) if number >> 63 else number


ACK_SET_WORDS_MAX: Final = 49_152
"""Words of 64 messages in an ack set; no batch of 16 MiB needs more."""


def mask_of(words: Sequence[int]) -> int:
    """An ack set's words (signed, lowest first) as one mask."""
    if len(words) > ACK_SET_WORDS_MAX:
        raise WireError(f"an ack set of {len(words)} words")
    return int.from_bytes(pack(f"<{len(words)}q", *words), "little")


def message_id(data: pb.MessageIdData) -> values.MessageId:
    first = data.first_chunk_message_id if data.HasField("first_chunk_message_id") else None
    return values.MessageId(
        ledger_id=signed(data.ledger_id),
        entry_id=signed(data.entry_id),
        partition=data.partition,
        batch_index=data.batch_index,
        ack_mask=mask_of(data.ack_set) if data.ack_set else None,
        batch_size=data.batch_size,
        # Only one level: deeper ones have no meaning, and may be hostile.
        first_chunk=values.MessageId(signed(first.ledger_id), signed(first.entry_id))
        if first is not None
        else None,
    )


def mapping(pairs: Iterable[pb.KeyValue]) -> Mapping[str, str]:
    return {pair.key: pair.value for pair in pairs}


def schema(command: pb.CommandProducer | pb.CommandSubscribe) -> values.SchemaInfo | None:
    return schema_info(command.schema) if command.HasField("schema") else None


def schema_info(schema: pb.Schema) -> values.SchemaInfo:
    return values.SchemaInfo(
        schema.name, int(schema.type), schema.schema_data, mapping(schema.properties)
    )


class _ForSomebody(Protocol):
    original_principal: str
    original_auth_data: str
    original_auth_method: str


def original_user(command: _ForSomebody) -> values.OriginalUser | None:
    if not command.original_principal:
        return None
    return values.OriginalUser(
        command.original_principal, command.original_auth_data, command.original_auth_method
    )


class _InTxn(Protocol):
    txnid_least_bits: int
    txnid_most_bits: int


def txn(command: _InTxn) -> values.Txn:
    return command.txnid_most_bits, command.txnid_least_bits


def txn_if_any(command: pb.CommandSend | pb.CommandAck) -> values.Txn | None:
    # Presence decides, since both halves of coordinator 0's first transaction are 0.
    if command.HasField("txnid_most_bits") and command.HasField("txnid_least_bits"):
        return txn(command)
    return None
