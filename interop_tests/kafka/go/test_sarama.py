"""Sarama, the client that older programs in Go use; the scenes are in sarama*.go."""

import pytest

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]

TIME = 1_600_000_000_000


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_that_a_record_carries(play, codec):
    assert play("sarama.records", codec=codec) == [
        [0, TIME, "k", None, [["a", "1"], ["a", None]]],
        [1, TIME, None, "", []],
        [2, TIME, "", "v", []],
        [3, TIME, "long", "padding", []],
    ]


@pytest.mark.parametrize("version", ["2.1.0", "4.1.0"])
def test_thousands_in_flight(play, version):
    assert play("sarama.many", version=version) == [5_000, 0, True]


def test_offsets(play):
    assert play("sarama.offsets") == {
        "oldest": 0,
        "newest": 10,
        "at": 4,
        "beyond": -1,
        "after": 6,
        "gone": "1",
        "read": ["6", "7", "8", "9"],
        "managed": [8, "note", 7, "back"],
    }


def test_transactions(play):
    assert play("sarama.transactions") == [["0", "1", "2", "3"], ["0", "2"], [1, 1, 3, 3]]


def test_a_zombie_is_fenced(play):
    error, values = play("sarama.fenced")
    assert error in ("47", "90")
    assert values == ["heir"]


@pytest.mark.parametrize("kind", ["range", "roundrobin", "sticky"])
def test_members_share(play, kind):
    assert play("sarama.share", kind=kind) == 180


def test_topics(play):
    assert play("sarama.topics") == {
        "again": 36,
        "listed": [3, 1],
        "grown": 5,
        "retention.ms": "5000",
        "set anew cleanup.policy": ["compact", False],
        "set anew retention.ms": ["604800000", True],
        "cluster": [1, 0],
        "dirs": 1,
        "gone": 3,
    }


def test_groups_by_tools(play):
    assert play("sarama.groups", kind="range") == {
        "described": ["Stable", "consumer", "range", 1],
        "listed": "consumer",
        "in use": "68",
        "altered": 0,
        "fetched": [3, "note"],
        "deleted": "none",
        "still listed": False,
    }
