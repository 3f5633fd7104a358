"""Apache's client for Go: who it is, and what it may do. Tokens that it fetches are in `oauth/`."""

import pytest

from interop_tests.security.pulsar_people import token

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]


@pytest.fixture
def file_of(tmp_path):
    """The file with the token of somebody."""

    def write(name, seconds=None, **more):
        file = tmp_path / name
        file.write_text(token(name, seconds, **more))
        return str(file)

    return write


def test_a_token_and_a_password(pulsar_go, server, administrator, file_of, topics):
    url = server.pulsar_url
    administrator.grant("alice", "produce", "consume")
    administrator.grant("bob", "produce", "consume")
    assert pulsar_go.play("access.exchange", url, topics(), token=file_of("alice")) == ["0"]
    known = {"name": "bob", "password": "builder"}
    assert pulsar_go.play("access.exchange", url, topics(), **known) == ["0"]


def test_who_is_refused(pulsar_go, server, file_of, topic):
    for number, wrong in enumerate(
        (
            {},
            {"name": "bob", "password": "a guess"},
            {"token": file_of("root", seconds=-60)},
            {"token": file_of("dora", secret=b"x" * 32)},
            {"token": file_of("stranger")},
        )
    ):
        outcome = pulsar_go.play("access.exchange", server.pulsar_url, topic, patience=2, **wrong)
        assert isinstance(outcome, str), (number, outcome)


def test_a_right_that_is_taken(pulsar_go, server, administrator, file_of, topic):
    administrator.grant("gopher", "produce")
    scene = pulsar_go.start(
        "access.taken", server.pulsar_url, topic, token=file_of("gopher"), patience=3
    )
    scene.wait_for("sent")
    administrator.revoke("gopher")
    scene.tell("taken")
    scene.wait_for("refused")
    administrator.grant("gopher", "produce")
    scene.tell("given")
    late, again, given = scene.result()
    assert "none" not in (late, again)
    assert given == "none"


def test_a_token_that_expires(pulsar_go, server, administrator, file_of, topic):
    """The client reads its file again when the server asks for a new token."""
    administrator.grant("gus", "produce")
    file = file_of("gus", seconds=2)
    scene = pulsar_go.start(
        "access.expiring", server.pulsar_url, topic, token=file, milliseconds=4_000
    )
    scene.wait_for("attached")
    before = administrator.attached(topic)[0][0]
    file_of("gus", seconds=60)
    scene.wait_for("over")
    after = administrator.attached(topic)[0][0]
    scene.tell("looked")
    assert scene.result() > 0
    assert before["address"] == after["address"], "the connection is the same"
    assert before["connectedSince"] == after["connectedSince"]
