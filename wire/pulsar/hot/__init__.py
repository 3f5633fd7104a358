"""Hand-written codecs of SEND, SEND_RECEIPT, MESSAGE, ACK and FLOW, for a run at a time.

Frames of one producer (or acks of one consumer) in one buffer look alike: the same sizes,
tags and ids; only sequence ids, checksums and payloads differ. So the shape of a frame is learned
once, and each further frame costs one `unpack_from`, one comparison with the shape, and the copy
and check of its payload. In the other direction everything but entry ids is constant in a run, and
the pieces are joined in C.

Rules:
- A reader recognises only the regular encoding, which every stock client writes. For anything else
  (another order of fields, rare fields, a bad checksum, an impossible size) it returns nothing and
  consumes nothing: `commands` then decodes the frame with protobuf, or refuses it.
- A run is returned as soon as a frame does not belong to it.
- A message costs no objects but its payload and its sequence id; no state lives between calls.

All functions take plain values. Those that run for each message have a compiled twin with the same
signature in `compiled/`; the choice is made below (see `core.native`).
`bench/codec.py` measures both. Begin with `sends`; the others are variations.
"""

from magnetar.core.native import quickest
from magnetar.wire.pulsar.hot import acks as _acks
from magnetar.wire.pulsar.hot import acks_in_transaction as _acks_in_transaction
from magnetar.wire.pulsar.hot import messages as _messages
from magnetar.wire.pulsar.hot import receipts as _receipts
from magnetar.wire.pulsar.hot import sends as _sends
from magnetar.wire.pulsar.hot.acks import ACK_HEAD, FLOW_HEAD, parse_flow
from magnetar.wire.pulsar.hot.contents import malformed
from magnetar.wire.pulsar.hot.messages import Suffix, suffix_of
from magnetar.wire.pulsar.hot.receipts import receipts_without_id
from magnetar.wire.pulsar.hot.sends import SEND_HEAD, FrameLimits, echo_of, sequence_of

_READING = "magnetar.wire.pulsar.hot.compiled.reading"
_WRITING = "magnetar.wire.pulsar.hot.compiled.writing"

parse_sends = quickest(_sends.parse_sends, _READING)
parse_acks = quickest(_acks.parse_acks, _READING)
parse_acks_in_transaction = quickest(_acks_in_transaction.parse_acks_in_transaction, _READING)
receipts = quickest(_receipts.receipts, _WRITING)
messages = quickest(_messages.messages, _WRITING)
without_broker_part = quickest(_messages.without_broker_part, _WRITING)

__all__ = [
    "ACK_HEAD",
    "FLOW_HEAD",
    "SEND_HEAD",
    "FrameLimits",
    "Suffix",
    "echo_of",
    "malformed",
    "messages",
    "parse_acks",
    "parse_acks_in_transaction",
    "parse_flow",
    "parse_sends",
    "receipts",
    "receipts_without_id",
    "sequence_of",
    "suffix_of",
    "without_broker_part",
]
