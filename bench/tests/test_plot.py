import xml.etree.ElementTree as ElementTree

from bench.drive.command import Report
from bench.drive.measure import Sample
from bench.plot import curve_points, draw


def test_a_curve_ends_where_the_samples_do() -> None:
    points = curve_points([(1_000_000, 99), (4_000_000, 1)])
    assert points[0] == (0.0, 1.0)
    assert points[-1] == (2.0, 4.0)


def test_the_picture_is_sound_xml_and_names_servers_and_cases() -> None:
    samples = [
        Sample("publish", "a & b", 0, True, {"cpu_us": 2.0}),
        Sample("rate-1000", "a & b", 0, True, {"cpu_us": 50.0}, publish_buckets=[(700_000, 10)]),
    ]
    picture = draw(Report(machine={"cores": "2"}, samples=samples))
    shown = " ".join(node.text or "" for node in ElementTree.fromstring(picture).iter())
    assert "a & b" in shown
    assert "publish" in shown
    assert "publish latency at a fixed rate" in shown
