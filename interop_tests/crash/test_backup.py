"""A data directory that was copied while its server was stopped, as docs/operations.md says, and is
served elsewhere: schemas are what they were, by Pulsar's numbers and by the registry's ids.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pulsar
from pulsar.schema import AvroSchema

from magnetar import standalone

RECEIVE_MS = 15_000
PULSAR = "/admin/v2/schemas/public/default/lamps"
KEY = "lamps-key"


def lamp(*fields: str) -> dict[str, Any]:
    named = [{"name": name, "type": "int", "default": 0} for name in fields]
    return {"type": "record", "name": "Lamp", "fields": named}


VERSIONS = (lamp("watts"), lamp("watts", "lumens"))


def produce(server, definition, **value) -> None:
    client = pulsar.Client(server.pulsar_url)
    producer = client.create_producer(
        "lamps", schema=AvroSchema(None, schema_definition=definition)
    )
    producer.send(value)
    client.close()


def register(http: httpx.Client, text: str) -> int:
    body = {"schema": text, "schemaType": "AVRO"}
    answer = http.post(f"/subjects/{KEY}/versions", json=body).raise_for_status()
    return int(answer.json()["id"])


def told(http: httpx.Client, ids: list[int]) -> dict[str, Any]:
    """All that a server says of its schemas, by path."""
    paths = [
        *(f"{PULSAR}/schema/{version}" for version in range(len(VERSIONS))),
        f"{PULSAR}/schemas",
        *(f"/schemas/ids/{each}" for each in ids),
        *(f"/schemas/ids/{each}/versions" for each in ids),
        f"/subjects/{KEY}/versions",
        f"/subjects/{KEY}/versions/latest",
        "/subjects/lamps-value/versions/1",
        "/subjects/lamps-value/versions/2",
        f"/config/{KEY}",
    ]
    return {path: http.get(path).raise_for_status().json() for path in paths}


def used(data: Path) -> tuple[list[int], dict[str, Any]]:
    """Fills a directory by a server, which is stopped: ids of schemas, and what it told of them."""
    with standalone(data) as server, httpx.Client(base_url=server.http_url) as http:
        client = pulsar.Client(server.pulsar_url)
        client.subscribe("lamps", "s").close()
        client.close()
        produce(server, VERSIONS[0], watts=40)
        produce(server, VERSIONS[1], watts=60, lumens=800)
        http.put(f"/config/{KEY}", json={"compatibility": "NONE"}).raise_for_status()
        ids = [register(http, text) for text in ('"string"', '"long"')]
        ids += [http.get(f"/subjects/lamps-value/versions/{n}").json()["id"] for n in (1, 2)]
        return ids, told(http, ids)


def test_schemas_are_in_a_backup(tmp_path) -> None:
    data = tmp_path / "data"
    ids, before = used(data)
    backup = tmp_path / "elsewhere" / "data"
    shutil.copytree(data, backup)
    with standalone(backup) as server, httpx.Client(base_url=server.http_url) as http:
        assert told(http, ids) == before
        assert json.loads(before[f"{PULSAR}/schema/0"]["data"]) == VERSIONS[0]
        assert before[f"/schemas/ids/{ids[0]}"]["schema"] == '"string"'
        assert register(http, '"long"') == ids[1]
        assert register(http, '"double"') not in ids
        client = pulsar.Client(server.pulsar_url)
        schema = AvroSchema(None, schema_definition=VERSIONS[1])
        consumer = client.subscribe("lamps", "s", schema=schema)
        assert [consumer.receive(RECEIVE_MS).value() for _ in range(2)] == [
            {"watts": 40, "lumens": 0},
            {"watts": 60, "lumens": 800},
        ]
        client.close()
