"""Eclipse's Java clients go on while the server is killed."""

import pytest

from magnetar import standalone

NO_ALIASES = {"topic_alias_maximum": 0}
"""The client of 5.0 (1.2.5) sends a message again as it was: with the topic alias of the connection
before, without the topic. Any server has to refuse that, each time (3.3.2.3.4).
"""

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_it_reconnects_after_kills(mqtt_java, topic, version, qos):
    with standalone(mqtt=NO_ALIASES if version == 5 else {}) as server:
        scene = mqtt_java.start("crash", server.mqtt_url, topic, version=version, qos=qos)
        for _ in range(3):
            scene.tell("more")
            scene.wait_for("more")
            server.kill()
            server.restart()
        scene.tell("more")
        scene.wait_for("more")
        scene.tell("end")
        seen = scene.result()
    assert seen["distinct"] == seen["acknowledged"] > 0
    if qos == 2 and version == 4:
        # That of 5.0 (1.2.5) gives each PUBLISH of QoS 2 to its application when it comes, also one
        # with DUP that it has (`ClientState.notifyReceivedMsg`); that of 3.1.1 waits for PUBREL.
        assert seen["count"] == seen["distinct"]
