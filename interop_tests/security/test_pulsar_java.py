"""Apache's Java client, and its pulsar-admin: who they are, and what they may do."""

import subprocess
from pathlib import Path

import pytest

from interop_tests import maven

from .pulsar_people import NAMESPACE, token

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

ADMIN = Path(__file__).parent.parent / "pulsar" / "admin"
MAIN = "org.apache.pulsar.admin.cli.PulsarAdminTool"
PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
COMMAND_SECONDS = 60
EXPIRY_SECONDS = 2


@pytest.fixture
def file_of(tmp_path):
    """The file with the token of somebody."""

    def write(name, seconds=None):
        file = tmp_path / name
        file.write_text(token(name, seconds))
        return file

    return write


def test_a_token(java, server, administrator, file_of, topic):
    administrator.grant("alice", "produce", "consume")
    seen = java.play("publish.sync", server.pulsar_url, topic, token=str(file_of("alice")))
    assert seen["ids"] == seen["sent"]


def test_a_password(java, server, administrator, topic):
    administrator.grant("bob", "produce", "consume")
    people = {"builder": "none", "wrong": "AuthenticationException"}
    for password, outcome in people.items():
        seen = java.play(
            "access.create", server.pulsar_url, topic, name="bob", password=password, patience=3
        )
        assert seen == outcome


def test_who_is_refused(java, server, file_of, topic):
    url = server.pulsar_url
    assert java.play("access.create", url, topic, own=True) == "AuthenticationException"
    expired = str(file_of("root", seconds=-60))
    assert java.play("access.create", url, topic, token=expired) == "AuthenticationException"
    stranger = str(file_of("stranger"))
    assert java.play("access.create", url, topic, token=stranger) == "AuthorizationException"


def test_a_right_that_is_taken(java, server, administrator, file_of, topic):
    administrator.grant("carol", "produce")
    scene = java.start("access.taken", server.pulsar_url, topic, token=str(file_of("carol")))
    scene.wait_for("sent")
    administrator.revoke("carol")
    scene.tell("taken")
    seen = scene.result()
    assert seen["again"] == "AuthorizationException"
    assert seen["late"] != "none"


def test_a_token_that_expires(java, server, administrator, file_of, topic):
    """The client reads its file again when the server asks for a new token."""
    administrator.grant("dave", "produce")
    file = file_of("dave", seconds=EXPIRY_SECONDS)
    milliseconds = 1_000 * (EXPIRY_SECONDS + 2)
    scene = java.start(
        "access.expiring", server.pulsar_url, topic, token=str(file), milliseconds=milliseconds
    )
    scene.wait_for("attached")
    before = administrator.attached(topic)[0][0]
    file.write_text(token("dave", seconds=60))
    scene.wait_for("over")
    after = administrator.attached(topic)[0][0]
    scene.tell("looked")
    assert scene.result() > 0
    assert before["address"] == after["address"], "the connection is the same"
    assert before["connectedSince"] == after["connectedSince"]


@pytest.mark.slow
def test_pulsar_admin(server, administrator, tmp_path):
    jars = maven.build(ADMIN) / "jars"
    conf = tmp_path / "client.conf"

    def run(name, command):
        conf.write_text(
            f"webServiceUrl={server.http_url}/\nbrokerServiceUrl={server.pulsar_url}/\n"
            f"authPlugin={PLUGIN}\nauthParams=token:{token(name)}\n"
        )
        java = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", MAIN)
        return subprocess.run(
            [*java, str(conf), *command.split()],
            capture_output=True, text=True, timeout=COMMAND_SECONDS,
        )  # fmt: skip

    grant = "namespaces grant-permission public/default --role erin --actions produce,consume"
    refused = run("erin", grant)
    assert refused.returncode != 0
    assert "erin may not alter tenant public" in refused.stdout + refused.stderr
    assert run("root", grant).returncode == 0
    assert administrator.http.get(f"{NAMESPACE}/permissions").json()["erin"] == [
        "consume",
        "produce",
    ]
    listed = run("erin", "topics list public/default")
    assert listed.returncode == 0, listed.stderr
