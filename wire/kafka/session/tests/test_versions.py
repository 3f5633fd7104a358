"""The first words."""

from __future__ import annotations

import pytest

from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Stage
from magnetar.wire.kafka.messages.basics import ApiVersionsRequest
from magnetar.wire.kafka.session.versions import SERVED


@pytest.mark.parametrize("version", range(5))
async def test_what_is_served(stage: Stage, version: int) -> None:
    client = await stage.client()
    request = ApiVersionsRequest(
        client_software_name="apache-kafka-java", client_software_version="4.3.1"
    )
    received = await client.exchange(request, version)
    assert received.error_code == 0
    found = {one.api_key: (one.min_version, one.max_version) for one in received.api_keys}
    assert found == SERVED


@pytest.mark.parametrize("name", ["", "-a", "a b", "\u00fc", "a."])
async def test_clients_have_names(stage: Stage, name: str) -> None:
    client = await stage.client()
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert (await client.exchange(request, 3)).error_code == errors.INVALID_REQUEST
    assert (await client.exchange(request, 2)).error_code == 0
