"""Each kind of request that is served has a handler, which gets it as it was decoded."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from magnetar.core.testing.line import Line
from magnetar.wire.kafka.addresses import Endpoint
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.basics import MetadataRequest, MetadataRequestTopic
from magnetar.wire.kafka.session.context import Caller, RequestContext
from magnetar.wire.kafka.session.handlers import RequestHandlers
from magnetar.wire.kafka.session.versions import SERVED


async def test_all_that_is_served_is_handled(stage: Stage) -> None:
    assert {*RequestHandlers(stage.front.services).by_key, ApiKey.PRODUCE} == set(SERVED)


@pytest.mark.parametrize("key", [key for key in ApiKey if key is not ApiKey.PRODUCE])
async def test_a_handler_gets_the_request_of_its_kind(stage: Stage, key: ApiKey) -> None:
    handler = RequestHandlers(stage.front.services).by_key[key]
    context, request = inspect.signature(handler).parameters.values()
    assert context.annotation == "RequestContext"
    assert request.annotation.removesuffix(" | None") == APIS[key].request.__name__


async def test_a_handler_answers_without_a_session(stage: Stage) -> None:
    connection: Any = Line()
    caller = Caller(connection, Endpoint("mq", 9092), "kafka")
    context = RequestContext(ApiKey.METADATA, 9, 1, "c", caller)
    handler = RequestHandlers(stage.front.services).by_key[ApiKey.METADATA]
    received = await handler(context, MetadataRequest(topics=[MetadataRequestTopic(name="..")]))
    assert [(one.host, one.port) for one in received.brokers] == [("mq", 9092)]
    assert received.topics[0].error_code != 0
