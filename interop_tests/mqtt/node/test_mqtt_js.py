"""MQTT.js, the client of programs in JavaScript and of web pages; the scenes are in main.js."""

from pathlib import Path

import pytest

from magnetar import standalone

pytestmark = [pytest.mark.node, pytest.mark.timeout(180)]


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_in_order(play, version, qos):
    seen = play("messages", version=version, qos=qos)
    assert seen == {"granted": [qos], "inOrder": True, "count": 200}


def test_topic_aliases_to_it(play):
    """Fewer than it has topics: some come with an alias, and some without."""
    seen = play("messages", version=5, qos=1, aliases=2)
    assert seen == {"granted": [1], "inOrder": True, "count": 200}


def test_properties_of_5(play):
    found = play("properties", version=5)
    assert 98 <= found.pop("messageExpiryInterval") <= 100
    assert found == {
        "contentType": "text/plain",
        "responseTopic": "answers",
        "correlationData": [0, 255],
        "payloadFormatIndicator": True,
        "userProperties": {"a": ["1", "2"], "b": "3"},
        "subscriptionIdentifier": 7,
    }


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_retained_messages(play, version, qos):
    assert play("retained", version=version, qos=qos) == [["1", qos, True], ["3", qos, True]]


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will(play, version, qos):
    assert play("will", version=version, qos=qos) == [["gone", qos]]


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_session(play, version, qos):
    assert play("session", version=version, qos=qos) == list(range(60))


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_shared_subscription(play, version, qos):
    assert play("shared", version=version, qos=qos) == [10, 10]


@pytest.mark.parametrize("qos", [1, 2])
def test_it_reconnects_after_kills(mqtt_node, topic, qos):
    with standalone() as server:
        scene = mqtt_node.start("crash", server.mqtt_ws_url, topic, qos=qos, seconds=100)
        for _ in range(3):
            scene.tell("more")
            scene.wait_for("more")
            server.kill()
            server.restart()
        scene.tell("more")
        scene.wait_for("more")
        scene.tell("end")
        seen = scene.result()
    assert seen["distinct"] >= seen["acknowledged"] > 0
    if qos == 2:
        assert seen["count"] == seen["distinct"]


@pytest.mark.parametrize("transport", ["mqtt_tls_url", "mqtt_wss_url"])
@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_over_tls(mqtt_node, secure, authority, topic, transport, version, qos):
    url = getattr(secure, transport).replace("127.0.0.1", "localhost")
    ca = Path(authority.certificate).read_text()
    seen = mqtt_node.play("messages", url, topic, version=version, qos=qos, ca=ca)
    assert seen == {"granted": [qos], "inOrder": True, "count": 200}
