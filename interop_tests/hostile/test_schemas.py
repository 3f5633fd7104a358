"""Schemas that are none, are too large, or are made to take long: each way to bring one refuses it
with its own error, and nothing is stored. Beside them others go on.
"""

from __future__ import annotations

import json
from urllib.parse import quote

import httpx
import pytest

from interop_tests.hostile.conftest import MIB, rss
from interop_tests.hostile.flood import WAIT_SECONDS_MAX, Flood
from interop_tests.raw import Raw
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer

NAMESPACE = "public/default"
PEERS = 20
GROWN_MAX = 48 * MIB
"""What one definition takes while it is read, and what the allocator keeps of that."""


def record(name="R", **more):
    return {"type": "record", "name": name, "fields": [{"name": "x", "type": "int"}], **more}


def text(schema) -> bytes:
    return json.dumps(schema).encode()


def arrays(depth):
    return b'{"type":"array","items":' * depth + b'"int"' + b"}" * depth


def chain(length, first="int"):
    """Records each of which has the next one, flat as they are written: in two ways each, so that
    who follows all of them has 2^length to follow.
    """
    fields = [{"name": "last", "type": record(f"R{length}")}]
    for number in range(length):
        both = [{"name": name, "type": f"R{number + 1}"} for name in "ab"]
        fields.append({"name": f"f{number}", "type": record(f"R{number}", fields=both)})
    return record(fields=[{"name": "x", "type": first}, *fields])


GOOD = text(chain(1_500))
NO_AVRO = {
    "nothing": b"",
    "cut off": b'{"type": "record", "name": "R", "fields": [',
    "not a word of it": b"\x00\xff" * 1_000,
    "no type": b'{"type": "lamp"}',
    "a number": b"1" * 5_000,
    "a megabyte": text(record(doc="d" * MIB)),
    "10,000 arrays": arrays(10_000),
    "65 arrays": arrays(65),
    "10,000 lists": b"[" * 10_000 + b"]" * 10_000,
    "100,000 names": text(record(aliases=["a"] * 100_000)),
    "a union in a union": text(["null", ["null"]]),
    "a type that is not there": text(record(fields=[{"name": "x", "type": "R1"}])),
    "a type that is there twice": text(
        record(fields=[{"name": name, "type": record("T")} for name in "ab"])
    ),
    "a name of a folder": text(record("../..")),
    "a name in quotes": text(record('"; DROP TABLE "')),
    "a name with a NUL": text(record("R\0")),
    "a name of lines": text(record("R\nR")),
    "a name without letters": text(record("")),
    "a name of 300,000 letters": text(record("R" * 300_000)),
    "a field with a name of a folder": text(record(fields=[{"name": "../x", "type": "int"}])),
}
MAY_NOT_FOLLOW = {
    "another type": text(chain(1_500, first="string")),
    "1,501 steps into each other": text(chain(1_501)),
}
"""Schemas, but not after `GOOD`."""
TAKEN = ["../..", "../../x-value", "a/b", 'a"b', "'; --", "%2e%2e", "a?b#c", "$", "__proto__", " "]
REFUSED = ["a\0b", "a\nb", "\u202e", ":.other:x", "n" * 3_000]
"""Names of subjects."""


def avro(definition):
    return pb.Schema(name="../..", type=pb.Schema.AVRO, schema_data=definition)


@pytest.fixture
def server(magnetar_module):
    return magnetar_module


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.http_url, timeout=20) as client:
        yield client


class Ways:
    """How one brings a schema to a topic; each tells the answer in a word."""

    def __init__(self, server, http, topic):
        self._server, self._http, self._topic = server, http, topic

    def producer(self, definition):
        return self._asked(peer.producer(1, 1, self._topic, schema=avro(definition)))

    def consumer(self, definition):
        return self._asked(peer.subscribe(1, 1, self._topic, "s", schema=avro(definition)))

    def tool(self, definition):
        path = f"/admin/v2/schemas/{NAMESPACE}/{self._topic}/schema"
        body = {"type": "AVRO", "schema": definition.decode(errors="replace"), "properties": {}}
        return self._http.post(path, json=body).status_code

    def serializer(self, definition):
        path = f"/subjects/{self._topic}-value/versions"
        body = {"schema": definition.decode(errors="replace")}
        answer = self._http.post(path, json=body)
        return answer.json().get("error_code", answer.status_code)

    def _asked(self, requested):
        with Raw(self._server) as raw:
            received = raw.introduce().ask(requested)
        if received.kind == "ERROR":
            return pb.ServerError.Name(received.body.error)
        return received.kind


WAYS = {
    "producer": ("PRODUCER_SUCCESS", "IncompatibleSchema", "IncompatibleSchema"),
    "consumer": ("SUCCESS", "IncompatibleSchema", "IncompatibleSchema"),
    "tool": (200, 422, 409),
    "serializer": (200, 42201, 409),
}
"""What is answered to a schema, to what is none, and to one that may not follow."""


@pytest.mark.parametrize("way", WAYS)
def test_each_is_refused_and_nothing_is_stored(server, http, bystander, topic, way):
    bring = getattr(Ways(server, http, topic), way)
    good, none, other = WAYS[way]
    bystander.works()
    assert bring(GOOD) == good
    versions = f"/admin/v2/schemas/{NAMESPACE}/{topic}/schemas"
    before, idle = http.get(versions).json(), rss(server)
    assert len(before["getSchemaResponses"]) == 1
    answers = {}
    for what, definition in (NO_AVRO | MAY_NOT_FOLLOW).items():
        answers[what] = bring(definition)
        bystander.works()
    assert answers == dict.fromkeys(NO_AVRO, none) | dict.fromkeys(MAY_NOT_FOLLOW, other)
    assert http.get(versions).json() == before
    assert http.get(f"/subjects/{topic}-value/versions").json() == [1]
    grown = rss(server) - idle
    assert grown < GROWN_MAX, f"{grown / MIB:.0f} MiB"


def test_many_at_once_without_end(server, topic):
    """Producers with whatever is refused; who behaves is served beside them."""
    opened = peer.producer(0, 0, topic, schema=avro(GOOD))
    with Raw(server) as raw:
        assert raw.introduce().ask(opened).kind == "PRODUCER_SUCCESS"
    refused = [*NO_AVRO.values(), *MAY_NOT_FOLLOW.values()]

    def ask(number: int, turn: int) -> bytes:
        if not turn:
            return peer.connect()
        definition = refused[(number + turn) % len(refused)]
        return peer.producer(turn, turn, topic, schema=avro(definition))

    came = Flood(server, server.pulsar_url, PEERS, ask)
    assert came.answers > 2 * PEERS
    assert came.grown < GROWN_MAX + PEERS * MIB, str(came)
    assert came.slowest < WAIT_SECONDS_MAX, str(came)
    path = f"/admin/v2/schemas/{NAMESPACE}/{topic}/schemas"
    found = httpx.get(f"{server.http_url}{path}").json()["getSchemaResponses"]
    assert [each["data"].encode() for each in found] == [GOOD]


def test_names_of_subjects(server, http):
    """One that is taken is that subject, and no other one; nothing of it is a path on the disk."""
    before = folders(server)
    for name in TAKEN:
        path = f"/subjects/{quote(name, safe='')}"
        assert http.post(f"{path}/versions", json={"schema": '"int"'}).status_code == 200, name
        assert http.get("/subjects", params={"subjectPrefix": name}).json() == [name]
        assert http.get(f"{path}/versions").json() == [1]
        assert http.delete(path).json() == [1]
        assert http.delete(path, params={"permanent": True}).json() == [1]
    known = http.get("/subjects?deleted=true").json()
    for name in REFUSED:
        path = f"/subjects/{quote(name, safe='')}/versions"
        answer = http.post(path, json={"schema": '"int"'})
        assert (answer.status_code, answer.json()["error_code"]) == (422, 42208), name
    assert http.get("/subjects?deleted=true").json() == known
    assert folders(server) == before


def folders(server):
    """Where the server might have written by mistake, but for files that come by themselves."""
    data = server.data_dir
    return {path for path in data.parent.glob("**/*") if path.is_dir()}
