"""What is stored of schemas."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.schema import records
from magnetar.core.schema.records import Named, SchemaVersions, StoredSchema, Subject
from magnetar.core.schema.referrers import REFERRERS_MAX
from magnetar.core.schema.registry import VERSIONS_MAX
from magnetar.core.schema.schema import SchemaKind, TopicSchema


def test_partitions_and_domains_share_a_list() -> None:
    names = ["a b", "a b-partition-3", "non-persistent://public/default/a b"]
    paths = {records.path_of(TopicName.parse(name)) for name in names}
    assert paths == {"/magnetar/schemas/public/default/a+b"}


@pytest.mark.parametrize(
    "name",
    [
        *(TopicName.parse(name) for name in ("t", "a/b/c d", "public/default/e+f")),
        *(Subject(name) for name in ("t-key", "a.b.C", "a/b c", "%2F", "..", "gr\u00fcn")),
    ],
)
def test_whose_a_list_is(name: Named) -> None:
    assert records.owner_of(records.path_of(name)) == name


def test_versions() -> None:
    versions = SchemaVersions().with_one_more(7, "a").with_one_more(9, "b")
    assert [(each.version, each.id) for each in versions.versions] == [(0, 7), (1, 9)]
    assert versions.latest == versions.numbered(1) == versions.same_as("b")
    assert versions.numbered(2) is versions.same_as("c") is None
    assert records.decode_versions(records.encode_versions(versions)) == versions


def test_a_deletion_takes_a_version() -> None:
    versions = SchemaVersions(strategy="FULL").with_one_more(7, "a").deleted()
    assert versions.latest is None
    assert (versions.next_version, versions.ids, versions.count) == (2, [7], 1)
    assert versions.strategy == "FULL"
    assert versions.with_one_more(8, "a").versions[0].version == 2


def test_one_version_is_deleted_in_two_steps() -> None:
    whole = SchemaVersions().with_one_more(7, "a").with_one_more(9, "b")
    first = whole.versions[0]
    hidden = whole.without(first)
    assert (hidden.versions, hidden.hidden_versions) == (whole.versions[1:], (first,))
    assert (hidden.ids, hidden.count, hidden.next_version) == ([7, 9], 2, 2)
    assert records.decode_versions(records.encode_versions(hidden)) == hidden
    left = hidden.cleared_of(first)
    assert (left.ids, left.count, left.next_version) == ([9], 1, 2)


def test_lists_that_know_only_the_ids_of_what_is_hidden() -> None:
    older = records.decode_versions(b'{"next_version":3,"versions":[],"hidden":[7,9]}')
    assert (older.ids, older.hidden_versions, older.strategy) == ([7, 9], (), "")


def test_a_schema() -> None:
    schema = TopicSchema(SchemaKind.JSON, b"{\n}\xff", {"a": "b"})
    stored = StoredSchema(schema, "/magnetar/schemas/public/default/t", "me", 17)
    assert records.decode_schema(records.encode_schema(stored)) == stored


@pytest.mark.parametrize(
    "data", [b"", b"{}\n", b'{"kind": "NOTHING", "path": "", "created_ms": 0}']
)
def test_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(Corrupted):
        records.decode_schema(data)
    with pytest.raises(Corrupted):
        records.decode_versions(b"[")


def test_what_was_stored_before_there_were_references() -> None:
    line = b'{"kind":"AVRO","path":"p","created_ms":1,"user":"me","properties":{"a":"b"}}'
    found = records.decode_schema(line + b"\n" + b'"int"')
    assert found.schema == TopicSchema(SchemaKind.AVRO, b'"int"', {"a": "b"})
    text = b'{"next_version":1,"versions":[{"version":0,"id":7,"identity":"i"}],"hidden":[3]}'
    assert records.decode_versions(text).referrers == {}


def test_who_refers_to_a_version() -> None:
    versions = SchemaVersions().with_one_more(7, "i").referred_to(0, 8).referred_to(0, 9)
    again = records.decode_versions(records.encode_versions(versions))
    assert (again, again.referrer_count) == (versions, 2)
    assert again.not_referred_to(9).referrers == {0: (8,)}
    assert again.not_referred_to(8).not_referred_to(9).referrers == {}


def test_a_list_fits_into_a_node_of_zookeeper() -> None:
    versions = SchemaVersions()
    for number in range(VERSIONS_MAX):
        versions = versions.with_one_more(10**9 + number, f"PROTOBUF_NATIVE-{'0' * 64}")
    ids = tuple(range(10**9, 10**9 + REFERRERS_MAX))
    versions = replace(versions, referrers={0: ids})
    assert len(records.encode_versions(versions)) < 300_000
