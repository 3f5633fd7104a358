"""franz-go, the client that current programs in Go use; the scenes are in franz*.go."""

import pytest

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TIME = 1_600_000_000_000
CLASSIC = ["range", "roundrobin", "sticky", "cooperative"]


@pytest.mark.parametrize("codec", CODECS)
def test_all_that_a_record_carries(play, codec):
    number = CODECS.index(codec)
    assert play("franz.records", codec=codec) == [
        [0, TIME, "k", None, [["a", "1"], ["a", None], ["", ""]], number],
        [1, TIME, None, "", [], number],
        [2, TIME, "", "v", [], number],
        [3, TIME, "long", "padding", [], number],
    ]


def test_order(play):
    assert play("franz.order", count=20_000) == 10


def test_large_records(play):
    assert play("franz.large") == [10, "MESSAGE_TOO_LARGE"]


def test_many_partitions(play):
    assert play("franz.many") == [100, 10]


def test_transactions(play):
    assert play("franz.transactions") == {
        "all": ["0", "1", "2", "3"],
        "committed": ["0", "2"],
        "open": [1, "Ongoing", "Ongoing"],
    }


def test_a_zombie_is_fenced(play):
    error, values = play("franz.fenced")
    assert error in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
    assert values == ["heir"]


def test_sessions_copy_exactly_once(play):
    assert play("franz.copy", count=400) == 400


@pytest.mark.parametrize("kind", [*CLASSIC, "consumer"])
def test_members_one_after_the_other(play, kind):
    assert play("franz.rounds", kind=kind) == [300, 0, [0, 0, 0]]


@pytest.mark.parametrize("kind", [*CLASSIC, "consumer"])
def test_members_share(play, kind):
    """What is read before it is committed comes again if it moves then, from member to member."""
    seen, again, state = play("franz.share", kind=kind)
    assert (seen, state) == (600, "newer Stable" if kind == "consumer" else "Stable")
    assert again == 0


@pytest.mark.parametrize("kind", ["cooperative", "consumer"])
def test_patterns(play, topic, kind):
    assert play("franz.pattern", kind=kind) == [topic, f"{topic}-later"]


@pytest.mark.parametrize("kind", ["range", "cooperative"])
def test_static_members(play, kind):
    assert play("franz.static", kind=kind) == [2, 0]


@pytest.mark.parametrize("kind", ["range", "cooperative", "consumer"])
def test_members_that_trickle_in(play, kind):
    assert play("franz.trickle", kind=kind) == 3


def test_topics(play):
    assert play("franz.topics") == {
        "made": [3, 1],
        "again": "TOPIC_ALREADY_EXISTS",
        "bad name": "INVALID_TOPIC_EXCEPTION",
        "retention.ms": "5000",
        "cleanup.policy": "compact",
        "partitions": 5,
        "dry": False,
        "dirs": 1,
        "gone": "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_offsets(play):
    assert play("franz.offsets") == {
        "start": 0,
        "end": 10,
        "at": 4,
        "beyond": 10,
        "highest": 9,
        "local": 0,
        "read from 4": "4",
        "read last": "9",
        "read from a time": "7",
        "low": 6,
        "start after": 6,
        "read from what is gone": "6",
    }


def test_groups_by_tools(play):
    assert play("franz.committed", kind="range") == {
        "fetched": [1, "note"],
        "state": "Empty",
        "left": False,
        "in use": "NON_EMPTY_GROUP",
        "members": ["Stable", 1, "consumer", 2],
        "deleted": "none",
        "listed": False,
    }


def test_the_cluster(play):
    assert play("franz.cluster") == [1, 0, True, 1, "SECURITY_DISABLED"]
