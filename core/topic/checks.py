"""What a topic's policies refuse message by message: too large, or to be delivered too late. Pure.

Only topics whose policies say so look at their messages (`Effective.checks_messages`).
"""

from __future__ import annotations

from collections.abc import Sequence

from core.entry.pulsar_metadata import deliver_at_time
from core.errors import NotAllowed
from core.policies import Effective


def refused(payloads: Sequence[bytes], policies: Effective, now_ms: int) -> dict[int, NotAllowed]:
    """Why messages of a run may not be stored, by place."""
    found: dict[int, NotAllowed] = {}
    size_max = policies.max_message_size
    delay_max = policies.delayed_delivery.max_delivery_delay_in_millis
    for at, payload in enumerate(payloads):
        if size_max and len(payload) > size_max:
            found[at] = NotAllowed(f"Exceed maximum message size of {size_max} bytes")
        elif delay_max > 0 and (deliver_at_time(payload) or 0) > now_ms + delay_max:
            found[at] = NotAllowed(
                f"Exceeds max allowed delivery delay of {delay_max} milliseconds"
            )
    return found
