"""kcat, Debian's, which is made of a librdkafka that is years old."""

import json
import shutil
import subprocess

import pytest

SECONDS = 30
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def kcat(server):
    """Runs it; what it says."""
    path = shutil.which("kcat")
    assert path is not None, "these tests need kcat, a package of Debian"

    def run(*words, said=""):
        done = subprocess.run(
            [path, "-b", server.bootstrap_servers, *words],
            input=said,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def lines(first, end):
    return "".join(f"line {number}\n" for number in range(first, end))


@pytest.mark.parametrize("codec", CODECS)
def test_lines_in_and_out(kcat, topic, codec):
    kcat("-P", "-t", topic, "-z", codec, said=lines(0, 500))
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "beginning") == lines(0, 500)


def test_keys_headers_and_nothing(kcat, topic):
    kcat("-P", "-t", topic, "-K:", "-Z", "-H", "a=1", "-H", "b=2", said="k:v\nempty:\n")
    found = kcat("-C", "-t", topic, "-e", "-q", "-J").splitlines()
    results = [json.loads(line) for line in found]
    assert [(one["key"], one["payload"]) for one in results] == [("k", "v"), ("empty", None)]
    assert {tuple(one["headers"]) for one in results} == {("a", "1", "b", "2")}
    assert [one["offset"] for one in results] == [0, 1]


def test_offsets(kcat, topic):
    kcat("-P", "-t", topic, "-X", "enable.idempotence=true", said=lines(0, 10))
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "7") == lines(7, 10)
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "-2") == lines(8, 10)
    assert kcat("-C", "-t", topic, "-c", "3", "-q", "-o", "beginning") == lines(0, 3)
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "s@1000") == lines(0, 10)
    assert kcat("-Q", "-t", f"{topic}:0:1000") == f"{topic} [0] offset 0\n"


def test_a_group_goes_on_where_it_was(kcat, topic):
    group = ["-G", topic, "-X", "auto.offset.reset=earliest", "-q"]
    kcat("-P", "-t", topic, said=lines(0, 10))
    assert kcat(*group, "-c", "10", topic) == lines(0, 10)
    kcat("-P", "-t", topic, said=lines(10, 20))
    assert kcat(*group, "-c", "10", topic) == lines(10, 20)


def test_what_is_there(kcat, server, made, topic):
    made(topic, 3)
    results = json.loads(kcat("-L", "-J", "-t", topic))
    assert [one["name"] for one in results["brokers"]] == [server.bootstrap_servers]
    (found,) = results["topics"]
    assert [(one["partition"], one["leader"]) for one in found["partitions"]] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
