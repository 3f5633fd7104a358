"""Confluent's serializers for JavaScript, at this registry; the scenes are in registry.js."""

import pytest

pytestmark = [pytest.mark.node, pytest.mark.timeout(180)]


def test_values_in_avro_whose_schema_refers_to_another(play, server):
    found = play("registry.avro", registry=server.http_url)
    assert found == {"watts": 40, "needed": 42206}


def test_values_in_json_schema(play, server):
    assert play("registry.json", registry=server.http_url) == {
        "watts": 40,
        "refused": 409,
        "follows": True,
        "versions": [1],
    }


def test_values_in_protobuf_whose_file_imports_another(play, server, topic):
    name = f"{topic}/bulb.proto"
    assert play("registry.protobuf", registry=server.http_url) == {
        "watts": 40,
        "references": [{"name": name, "subject": name, "version": 1}],
        "text": True,
        "needed": 42206,
    }
