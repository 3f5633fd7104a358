import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec

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


DOCS = Path(__file__).parents[2] / "docs"
FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}


def _published() -> Report:
    return msgspec.json.decode((DOCS / "performance.json").read_bytes(), type=Report)


def test_the_picture_of_the_docs_is_drawn_from_its_data() -> None:
    assert (DOCS / "performance.svg").read_text(encoding="utf-8") == draw(_published())


def test_the_first_table_of_the_docs_has_the_figures_of_its_data() -> None:
    table, _, _ = (DOCS / "performance.md").read_text(encoding="utf-8").partition("![")
    rows = dict(re.findall(r"^\| `([\w-]+)` \|(.*)$", table, re.MULTILINE))
    samples = _published().samples
    assert set(rows) == {sample.case for sample in samples}
    for sample in samples:
        _, ours, theirs, *_ = rows[sample.case].split("|")
        cell = ours if sample.server == "Magnetar" else theirs
        shown = {
            round(float(number) * FACTORS[factor], 6)
            for number, factor in re.findall(r"(?<!p)(\d+(?:\.\d+)?) ?([kM]?)\b", cell)
        }
        assert set(sample.figures.values()) <= shown, (sample.case, cell)
