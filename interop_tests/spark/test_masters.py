"""Other ways to run Spark than `local`: workers in processes of other machines, so to speak, and a
session over the network.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import workers_environment

pytestmark = pytest.mark.spark
MESSAGES = 300


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "master", ["connect:local[2]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.heavy)]
)
def test_batches_and_streams(lending, connect, topic, tmp_path, master) -> None:
    """`local-cluster` has two executors of their own, each with its workers."""
    producer = connect(lending.pulsar_url).create_producer(topic)
    for number in range(MESSAGES):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    job = Path(__file__).with_name("job.py")
    done = subprocess.run(
        [sys.executable, str(job), master, lending.http_url, topic, str(tmp_path)],
        env=os.environ | workers_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(MESSAGES)] * 4
