"""mosquitto_pub and mosquitto_sub, Debian's, as people use them in a shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from magnetar import standalone

SECONDS = 30
VERSIONS = ["31", "311", "5"]
EACH_QOS = ["0", "1", "2"]


def tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, "these tests need mosquitto-clients, a package of Debian"
    return path


@pytest.fixture
def at(server) -> list[str]:
    host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
    return ["-h", host, "-p", port]


@pytest.fixture
def pub(at):
    def run(*words: str, said: str | None = None) -> None:
        done = subprocess.run([tool("mosquitto_pub"), *at, *words], input=said, text=True,
                              capture_output=True, timeout=SECONDS, check=False)  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")

    return run


@pytest.fixture
def sub(at):
    """Starts one, and returns once it is subscribed; it ends after so many messages."""
    started: list[subprocess.Popen[str]] = []

    def start(count: int, *words: str) -> subprocess.Popen[str]:
        # into a pipe it would write whole blocks
        command = [
            tool("stdbuf"),
            "-oL",
            tool("mosquitto_sub"),
            *at,
            "-d",
            "-C",
            str(count),
            "-W",
            str(SECONDS),
            *words,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if "Subscribed" in line:
                return process
        raise AssertionError("it has ended before it was subscribed")

    yield start
    for process in started:
        process.kill()
        process.communicate()


def lines(process: subprocess.Popen[str]) -> list[str]:
    """What it received, without its own account of packets."""
    assert process.stdout is not None
    said = [line.rstrip("\n") for line in process.stdout]  # it ends by itself, `-C` or `-W`
    process.wait(SECONDS)
    return [line for line in said if not line.startswith(("Client ", "Subscribed"))]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_lines_in_and_out(pub, sub, topic, version, qos):
    reader = sub(200, "-V", version, "-q", qos, "-t", f"{topic}/#")
    said = [f"line {number}" for number in range(200)]
    pub("-V", version, "-q", qos, "-t", f"{topic}/a", "-l", said="\n".join(said) + "\n")
    assert lines(reader) == said


@pytest.mark.parametrize("qos", ["1", "2"])
def test_a_session_that_waits(pub, sub, at, topic, qos):
    first = sub(1, "-c", "-i", topic, "-q", qos, "-t", topic)
    pub("-t", topic, "-m", "0", "-q", qos)
    assert lines(first) == ["0"]
    for number in range(1, 6):
        pub("-t", topic, "-m", str(number), "-q", qos)
    words = ["-c", "-i", topic, "-q", qos, "-t", topic, "-C", "5", "-W", str(SECONDS)]
    done = subprocess.run([tool("mosquitto_sub"), *at, *words], capture_output=True, text=True,
                          timeout=SECONDS + 5, check=True)  # fmt: skip
    assert done.stdout.split() == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_retained_and_removed(pub, sub, topic, version, qos):
    said = ["-V", version, "-q", qos]
    pub(*said, "-t", f"{topic}/1", "-m", "kept", "-r")
    pub(*said, "-t", f"{topic}/2", "-m", "removed", "-r")
    pub(*said, "-t", f"{topic}/2", "-n", "-r")
    pub("-t", f"{topic}-stored", "-n", "-q", "1", "-r")  # as all before it, on the same way
    reader = sub(2, "-V", version, "-t", f"{topic}/#", "-F", "%r %t %p")
    pub(*said, "-t", f"{topic}/3", "-m", "live")
    assert lines(reader) == [f"1 {topic}/1 kept", f"0 {topic}/3 live"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_will(sub, topic, version, qos):
    """Of a subscriber that is killed."""
    reader = sub(1, "-V", version, "-q", "2", "-t", topic, "-F", "%q %p")
    will = ["--will-topic", topic, "--will-payload", "gone", "--will-qos", qos]
    sub(1, "-V", version, "-t", f"{topic}-other", *will).kill()
    assert lines(reader) == [f"{qos} gone"]


@pytest.mark.parametrize("qos", ["1", "2"])
def test_a_subscriber_goes_on_after_kills(topic, qos):
    """It connects again by itself, to its session."""
    with standalone() as server:
        host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
        words = ["-h", host, "-p", port, "-t", topic, "-q", qos]
        command = [tool("stdbuf"), "-oL", tool("mosquitto_sub"), *words, "-c", "-i", topic, "-d"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            seen = iter(reader.stdout)
            assert any("Subscribed" in line for line in seen)
            came = []
            for number in range(3):
                publish = [tool("mosquitto_pub"), *words, "-m", str(number)]
                subprocess.run(publish, check=True, timeout=SECONDS)
                if number:
                    server.kill()
                    server.restart()
                while not came or came[-1] != str(number):
                    came += [line.rstrip() for line in [next(seen)] if line[0].isdigit()]
            reader.kill()
    assert list(dict.fromkeys(came)) == ["0", "1", "2"]
    if qos == "2":
        assert came == ["0", "1", "2"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_shared_subscription(pub, sub, topic, version, qos):
    said = ["-V", version, "-q", qos]
    room = ["-D", "connect", "receive-maximum", "100"] if version == "5" else []
    readers = [sub(50, *said, *room, "-t", f"$share/group/{topic}/#") for _ in range(2)]
    sent = [f"line {number}" for number in range(100)]
    pub(*said, "-t", f"{topic}/a", "-l", said="\n".join(sent) + "\n")
    got = [lines(reader) for reader in readers]
    assert got == [sent[::2], sent[1::2]] or got == [sent[1::2], sent[::2]]


def test_the_figures_of_the_server(pub, sub, at, topic):
    reader = sub(1, "-t", topic)
    words = ["-t", "$SYS/broker/#", "-v", "-C", "20", "-W", str(SECONDS)]
    done = subprocess.run([tool("mosquitto_sub"), *at, *words], capture_output=True, text=True,
                          timeout=SECONDS + 5, check=True)  # fmt: skip
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if "retained" not in line)
    assert found["$SYS/broker/version"].startswith("Magnetar version ")
    assert int(found["$SYS/broker/clients/connected"]) >= 2
    pub("-t", topic, "-m", "end")
    assert lines(reader) == ["end"]
