"""Rules for MQTT topics: devices that share a stored topic see only what is theirs."""

import queue
from pathlib import Path

import pytest

from .pulsar_people import Administrator, secured, token
from .test_mqtt import WAIT_SECONDS, Device

RULES = """\
# every device has a branch of its own
pattern readwrite devices/%u/#
pattern read commands/%c
topic read news/#

user desk
topic read devices/#
topic write commands/+

user d1
topic deny devices/d1/secret
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "acl"
    path.write_text(RULES)
    return path


@pytest.fixture
def server(tmp_path: Path, rules: Path):
    with secured(tmp_path, {"mqtt": {"acl_file": str(rules)}}) as server:
        yield server


def of(server, name, client_id="", will=None, listener="mqtt"):
    return Device(server, "x", token(name), client_id=client_id, will=will, listener=listener)


def subscribed(device, *filters):
    """What SUBACK says of each filter."""
    found = []
    for filter in filters:
        device.client.subscribe(filter, 1)
        found.append(device.hears("subscribed"))
    return found


GRANTED, REFUSED = "Granted QoS 1", "Not authorized"


def test_devices_see_what_is_theirs(server):
    with of(server, "d1", "c1") as one, of(server, "d2", "c2") as two, of(server, "desk") as desk:
        for each in (one, two, desk):
            assert each.hears("connect") == "Success"
        assert subscribed(one, "devices/d1/#", "devices/d1/+", "commands/c1") == [
            REFUSED,  # a part of it is denied
            REFUSED,
            GRANTED,
        ]
        assert subscribed(one, "devices/d1/state", "devices/d2/state", "#", "$SYS/#") == [
            GRANTED,
            REFUSED,
            REFUSED,
            REFUSED,
        ]
        own = "persistent://public/default/devices/d1/"
        assert subscribed(one, own + "secret", own + "more", "news/x") == [
            REFUSED,
            GRANTED,
            REFUSED,
        ]
        assert subscribed(desk, "devices/#", "$share/g/devices/#", "$share/g/#") == [
            GRANTED,
            GRANTED,
            REFUSED,
        ]
        for topic, answer in (
            ("devices/d1/state", "Success"),
            ("devices/d1/secret", REFUSED),
            ("devices/d2/state", REFUSED),
            ("commands/c1", REFUSED),
        ):
            one.client.publish(topic, topic.encode(), qos=1)
            heard = {one.heard.get(timeout=WAIT_SECONDS)}
            if answer == "Success":
                heard.add(one.heard.get(timeout=WAIT_SECONDS))
                assert heard == {("published", answer), ("message", topic.encode())}
            else:
                assert heard == {("published", answer)}
        desk.client.publish("commands/c1", b"on", qos=1)
        assert one.hears("message") == b"on"
        two.client.publish("devices/d2/state", b"2", qos=1)
        assert two.hears("published") == "Success"
        heard = [desk.heard.get(timeout=WAIT_SECONDS) for _ in range(5)]
        # the subscription and the group each get both
        assert heard.count(("message", b"2")) == 2
        with pytest.raises(queue.Empty):
            one.heard.get(timeout=0.2)


def test_wills_and_retained_messages(server):
    with of(server, "desk") as desk:
        assert desk.hears("connect") == "Success"
        for topic, answer in (("devices/d2/gone", REFUSED), ("devices/d1/gone", "Success")):
            with of(server, "d1", "c1", will=(topic, b"bye", 1, True)) as device:
                assert device.hears("connect") == answer
                device.client._sock_close()  # no DISCONNECT
        assert subscribed(desk, "devices/d1/gone") == [GRANTED]
        assert desk.hears("message") == b"bye"


def test_a_name_with_a_wildcard_has_no_patterns(server):
    for name, client_id in (("+", "c"), ("d1/x", "c")):
        with of(server, name, client_id) as device:
            assert device.hears("connect") == "Success"
            assert (
                subscribed(device, f"devices/{name}/state", "devices/d1/x/state") == [REFUSED] * 2
            )


def test_rules_that_change(server, rules):
    with of(server, "d1", "c1") as device:
        assert device.hears("connect") == "Success"
        assert subscribed(device, "devices/d1/state") == [GRANTED]
        rules.write_text(RULES.replace("devices/%u/#", "things/%u/#"))
        assert device.hears("disconnect") == "Not authorized"
    with of(server, "d1", "c1") as device:
        assert device.hears("connect") == "Success"
        assert subscribed(device, "things/d1/state", "devices/d1/state") == [GRANTED, REFUSED]


def test_mount_points_have_the_rights_to_stored_topics_alone(tmp_path, rules):
    """The file is about the topics of the listener that everybody uses."""
    mqtt = {"acl_file": str(rules), "mount_points": {"acme/devices": "0"}}
    with secured(tmp_path, {"mqtt": mqtt}) as server:
        with Administrator(server).http as http:
            http.put("/admin/v2/tenants/acme", json={"allowedClusters": ["standalone"]})
            http.put("/admin/v2/namespaces/acme/devices").raise_for_status()
        with of(server, "d1", listener="mqtt@acme/devices") as device:
            assert device.hears("connect") == "Success"
            assert subscribed(device, "devices/d1/state", "news/x") == [REFUSED, REFUSED]
        with of(server, "d1") as device:
            assert device.hears("connect") == "Success"
            assert subscribed(device, "devices/d1/state") == [GRANTED]


def test_groups_and_retained_messages_of_topics_that_come_and_go(tmp_path):
    """Nothing is there to be checked when a stranger subscribes."""
    with secured(tmp_path, {"mqtt": {"rules": {"old/#": "{each}"}}}) as server:
        administrator = Administrator(server)
        group, gone = "$share/g/old/#", "persistent://public/default/gone/"
        with (
            administrator.http,
            of(server, "eve") as eve,
            of(server, "ann") as ann,
            of(server, "root") as root,
        ):
            administrator.grant("ann", "consume")
            for each in (eve, ann, root):
                assert each.hears("connect") == "Success"
            assert subscribed(eve, group) == subscribed(ann, group) == [GRANTED]
            for payload in (b"1", b"2"):
                root.client.publish("old/secret", payload, qos=1)
                assert root.hears("published") == "Success"
                assert ann.hears("message") == payload
            assert eve.hears("disconnect") == "Not authorized"
            root.client.publish(gone + "secret", b"3", qos=1, retain=True)
            assert root.hears("published") == "Success"
            path = "/admin/v2/persistent/public/default/gone%252Fsecret"
            administrator.http.delete(path, params={"force": "true"}).raise_for_status()
            assert subscribed(ann, gone + "+") == [GRANTED]
            assert ann.hears("message") == b"3"
        with of(server, "eve") as eve:
            assert eve.hears("connect") == "Success"
            assert subscribed(eve, gone + "+") == [GRANTED]
            with pytest.raises(queue.Empty):
                eve.heard.get(timeout=0.5)


def test_lines_for_nobody_hold_for_those_with_the_anonymous_role(tmp_path, rules):
    rules.write_text("topic read open\nuser guest\ntopic read named\n")
    with secured(tmp_path, {"mqtt": {"acl_file": str(rules)}}, anonymous_role="guest") as server:
        for device, expected in (
            (Device(server), [GRANTED, GRANTED, REFUSED]),
            (of(server, "guest"), [REFUSED, GRANTED, REFUSED]),
            (of(server, "d1"), [REFUSED, REFUSED, REFUSED]),
        ):
            with device:
                assert device.hears("connect") == "Success"
                assert subscribed(device, "open", "named", "other") == expected
