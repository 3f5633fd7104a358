"""Keys have Kafka's names, and one table of requests."""

import re

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.session import versions


def test_each_request_has_the_key_that_is_called_like_it() -> None:
    """`AddOffsetsToTxn` is ADD_OFFSETS_TO_TXN, as in Kafka's ApiKeys."""
    called = {key: re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).upper() for key, api in APIS.items()}
    assert called == {key: key.name for key in ApiKey}


def test_what_is_served_may_be_asked_for_and_has_a_name() -> None:
    assert set(versions.SERVED) == set(ApiKey)


def test_a_key_from_the_wire_is_found_by_its_number() -> None:
    assert versions.SERVED[18] == versions.SERVED[ApiKey.API_VERSIONS]
    assert ApiKey(3) is ApiKey.METADATA
