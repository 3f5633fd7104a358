"""Eclipse's Java clients: of 3.1 and 3.1.1, and of 5.0; the scenes are in src/."""

import pytest

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

VERSIONS = [3, 4, 5]
EACH_QOS = [0, 1, 2]
IN_ORDER = {"inOrder": True, "same": True}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_messages_in_order(play, version, qos):
    assert play("messages", version=version, qos=qos) == {"granted": qos, **IN_ORDER}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_retained_messages(play, version, qos):
    seen = play("retained", version=version, qos=qos)
    assert seen == [["1", qos, True], ["3", qos, True], ["live", qos, False]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_will(play, version, qos):
    """Live, and retained for who comes later; not of a client that disconnects."""
    live, kept = ["gone", qos, False], ["gone", qos, True]
    assert play("will", version=version, qos=qos) == [live, kept, 0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("cut", [False, True], ids=["leaves", "is cut"])
def test_a_session_while_its_client_is_away(play, version, qos, cut):
    seen = play("session", version=version, qos=qos, cut=cut)
    assert seen == {"present": [False, version > 3], "inOrder": True}  # 3.1 cannot say it


@pytest.mark.parametrize("qos", EACH_QOS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_shared_subscription(play, version, qos):
    assert play("shared", version=version, qos=qos) == [10, 10]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_a_filter_that_is_unsubscribed(play, version, qos):
    assert play("unsubscribed", version=version, qos=qos) == "2"


def test_properties_of_5(play):
    assert play("properties", version=5) == {
        "contentType": "text/plain",
        "responseTopic": "answers",
        "correlationData": "key",
        "payloadFormat": True,
        "userProperties": ["b=1", "a=2", "b=3"],
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", EACH_QOS)
def test_websocket(mqtt_java, server, topic, version, qos):
    seen = mqtt_java.play("messages", server.mqtt_ws_url, topic, version=version, qos=qos)
    assert seen == {"granted": qos, **IN_ORDER}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("transport", ["mqtt_tls_url", "mqtt_wss_url"])
def test_tls(mqtt_java, secure, authority, topic, version, transport):
    url = getattr(secure, transport)
    seen = mqtt_java.play("messages", url, topic, version=version, qos=1, ca=authority.certificate)
    assert seen == {"granted": 1, **IN_ORDER}
