"""franz-go's client of registries, at this server's; the scene is in franz_registry.go."""

import pytest

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]


def test_schemas_that_refer_to_each_other(play, server, topic):
    subject, other = f"{topic}-value", f"{topic}-bulb"
    reference = {"name": "bulb.proto", "subject": other, "version": 1}
    assert play("franz.registry", registry=server.http_url) == {
        "too early": 42201,
        "made": [subject, 1, "PROTOBUF", [reference]],
        "as it was": True,
        "found": True,
        "used by": [1, subject],
        "follows": False,
        "needed": 42206,
        "id": True,
        "gone": [1],
    }
