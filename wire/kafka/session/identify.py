"""InitProducerId: who wants to write everything once gets a number for it.

Numbers are never given twice. Transactions are refused: there are none yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from core.errors import BrokerError
from wire.kafka.errors import NONE, UNSUPPORTED_VERSION, code_of
from wire.kafka.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import Asked

NUMBERS: Final = "/magnetar/kafka/producer-ids"


async def on_init_producer_id(session: KafkaSession, asked: Asked) -> InitProducerIdResponse:
    request = asked.request
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is not None:
        return InitProducerIdResponse(
            error_code=UNSUPPORTED_VERSION, producer_id=-1, producer_epoch=-1
        )
    try:
        number = await session.broker.metadata.next(NUMBERS)
    except BrokerError as error:
        return InitProducerIdResponse(error_code=code_of(error), producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(error_code=NONE, producer_id=number, producer_epoch=0)


HANDLERS: Final[Mapping[int, Any]] = {22: on_init_producer_id}
