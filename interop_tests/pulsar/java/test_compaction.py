"""Compacted topics, as Apache's Java client sees them."""

import pytest

from interop_tests.pulsar.java.driver import numbered

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

LAST = {"k0": 56, "k1": 57, "k2": 58, "k4": 53, "k5": 54, "k6": 55}
"""The last value of each key but `k3`, which is deleted."""
ORDER = sorted(LAST, key=LAST.__getitem__)


@pytest.fixture
def play(java, server, topic):
    return lambda family, **args: java.play(
        family, server.pulsar_url, topic, http=server.http_url, **args
    )


@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize(("batched", "codec"), [(False, "NONE"), (True, "NONE"), (True, "LZ4")])
def test_what_is_read(play, batched, codec, trimmed):
    seen = play("compact.read", batched=batched, codec=codec, trimmed=trimmed)
    texts = [f"{key}={LAST[key]}" for key in ORDER]
    behind = texts[ORDER.index("k0") :]
    assert seen == {
        "found": texts,
        "original": True,
        "sought": behind[1:],
        "inclusive": behind,
        "last": True,
        "consumed": texts * 2,
        "table": {key: str(value) for key, value in LAST.items()},
        "again": ["k9=new"] * 2,
    }


def test_compaction_while_messages_are_published(play):
    seen = play("compact.meanwhile", count=3_000)
    assert seen == {"before": True, "after": True, "table": True, "keys": len(numbered(0, 49))}
