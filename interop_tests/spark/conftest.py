"""One Spark session for all tests here: it takes ten seconds to start.

The servers have a bookie's port for Spark's workers, and belong to a file.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from interop_tests import builds, maven
from magnetar import Standalone, pytest_plugin, standalone
from magnetar.spark_connector import admin_client

DISCOVERY = Path(__file__).parents[2] / "spark_connector/discovery"
"""Where Spark finds the format in a checkout; an installation has the module on its path."""
KAFKA_SOURCE = Path(__file__).parents[2] / "bench/peers/spark-kafka.pom.xml"
"""What the benchmark asks Maven for."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Sessions are short here, and many: what Java spends on its best code never comes back. The files
`test_views.py` and `test_pushdown.py` take 24 s of processors with this, and 43 without.
"""


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """All that is started here has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
        yield


def kafka_jars() -> list[Path]:
    """Spark's own Kafka source."""

    def make(target: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        builds.run([maven.found("mvn"), "-q", "-B", "-f", str(KAFKA_SOURCE), *goal], target)

    here = Path(__file__).parent
    return sorted(builds.once(here, [KAFKA_SOURCE], make).glob("*.jar"))


def _without_pandas(tmp_path_factory) -> Path:
    """A folder that keeps pandas, which is here for Spark Connect, from workers."""
    folder: Path = tmp_path_factory.mktemp("no_pandas")
    (folder / "pandas.py").write_text("raise ModuleNotFoundError('pandas is not to be needed')\n")
    return folder


def workers_environment(*more: str) -> dict[str, str]:
    """This Python, and where it finds the format in a checkout."""
    paths = [*more, str(DISCOVERY), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("magnetar")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.jars", ",".join(map(str, kafka_jars())))
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in workers_environment(str(_without_pandas(tmp_path_factory))).items():
            patch.setenv(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def lending(request, cluster_of_run) -> Iterator[Standalone]:
    """A server whose ledgers may be read; a gateway's are on bookies."""
    settings = pytest_plugin._settings(request.config)
    if cluster_of_run is not None:
        with cluster_of_run.gateway(settings) as made:
            yield made
    else:
        with standalone(**settings, bookie_port=0) as made:
            yield made


@pytest.fixture
def read(spark, lending) -> Callable[..., list[Any]]:
    """Reads topics: the rows in order."""

    def rows(topic: str, **options: str) -> list[Any]:
        reader = spark.read.format("magnetar").option("service.url", lending.http_url)
        frame = reader.option("topic", topic).options(**options).load()
        return frame.orderBy("topic", "partition", "offset").collect()

    return rows


class HurriedClock:
    """A clock that passes a pause at once. So the whole time that a server may be silent is over
    soon where none listens, and one that is only slow, on a busy machine, has all of it.
    """

    def __init__(self) -> None:
        self._ahead_seconds = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_seconds

    def sleep(self, seconds: float) -> None:
        self._ahead_seconds += seconds


@pytest.fixture
def hurried(monkeypatch) -> None:
    """Questions to a server are asked again without pauses, by this process."""
    monkeypatch.setattr(admin_client, "time", HurriedClock())


def kafka_producer(server, **more) -> Producer:
    return Producer({"bootstrap.servers": server.bootstrap_servers, **more})


@pytest.fixture
def run_job() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a job as users do."""

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        module = f"magnetar.spark_connector.jobs.{name}"
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run
