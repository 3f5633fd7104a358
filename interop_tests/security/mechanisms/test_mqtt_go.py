"""SCRAM over AUTH with a stock client: Eclipse's for Go, and a library of SCRAM that is not ours.

Other clients of MQTT 5.0 have less of it: paho's for Python sends no AUTH at all, and MQTT.js takes
the one that ends a re-authentication for an error.
"""

import pytest

from interop_tests.security.kafka_people import ALI
from interop_tests.security.pulsar_people import Administrator

pytestmark = [pytest.mark.go, pytest.mark.timeout(180)]

NAME, PASSWORD = ALI
NOT_AUTHORIZED = 0x87


@pytest.fixture
def play(mqtt_go, secure, root, topic):
    """Plays a scene: somebody connects, publishes, and proves who it is anew."""
    return lambda **args: mqtt_go.play("scram", secure.mqtt_url, topic, **args)


@pytest.mark.parametrize("method", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_right_password(play, secure, method):
    administrator = Administrator(secure)
    administrator.grant(NAME, "produce")
    seen = play(method=method, name=NAME, password=PASSWORD, again=PASSWORD)
    assert seen == {
        "connack": 0,
        "server proved": True,
        "published": 0,
        "again": 0,
        "published then": 0,
    }
    administrator.http.close()


def test_a_wrong_one(play):
    for name, password in ((NAME, "a guess"), ("nobody", PASSWORD)):
        assert play(name=name, password=password) == {"connack": NOT_AUTHORIZED}


def test_a_wrong_one_the_second_time(play):
    for name, password in ((NAME, "a guess"), ("nobody", PASSWORD)):
        seen = play(name=NAME, password=PASSWORD, then=name, again=password)
        assert (seen["connack"], seen["lost"]) == (0, NOT_AUTHORIZED)
