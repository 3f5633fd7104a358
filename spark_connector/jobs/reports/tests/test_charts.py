"""Charts: well-formed, within their frame, with their values in words."""

from xml.etree import ElementTree

import pytest

from magnetar.spark_connector.jobs.reports.charts import BARS_MAX, WIDTH, drawn
from magnetar.spark_connector.jobs.reports.report import BarChart, LineChart
from magnetar.spark_connector.jobs.reports.tests.full_report import BEGIN, full_report


def parsed(chart: BarChart | LineChart) -> ElementTree.Element:
    return ElementTree.fromstring(drawn(chart))


def texts(svg: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in svg.iter("text")]


def test_bars_are_as_long_as_their_values() -> None:
    svg = parsed(full_report().charts[0])
    assert texts(svg) == ["a<b", "7", "c", "10"]
    widths = [float(each.attrib["width"]) for each in svg.iter("rect")]
    assert widths[0] / widths[1] == pytest.approx(0.7, abs=0.01)


def test_lines_stay_in_the_frame() -> None:
    svg = parsed(full_report().charts[1])
    (line,) = svg.iter("polyline")
    points = [tuple(map(float, each.split(","))) for each in line.attrib["points"].split()]
    assert len(points) == 3
    assert all(0 <= x <= WIDTH and y >= 0 for x, y in points)
    assert points[0][1] > points[2][1], "more is higher"
    assert "2.0 at most" in texts(svg)


def test_a_first_moment_is_seen() -> None:
    chart = LineChart("lag", {"a": [(BEGIN, 4)], "b": [(BEGIN, 2), (BEGIN, 2)]})
    (dot,) = parsed(chart).iter("circle")
    assert float(dot.attrib["cy"]) == 20
    assert list(parsed(full_report().charts[1]).iter("circle")) == []


@pytest.mark.parametrize(
    "chart",
    [
        BarChart("none", []),
        BarChart("zero", [("a", 0)]),
        LineChart("none", {}),
        LineChart("one", {"a": [(BEGIN, 0)]}),
    ],
)
def test_nothing_is_drawn_too(chart: BarChart | LineChart) -> None:
    svg = parsed(chart)
    assert svg.attrib["aria-label"] == chart.title
    assert (chart.title == "none") is (texts(svg) == ["nothing yet"])


def test_many_bars_are_counted() -> None:
    svg = parsed(BarChart("many", [("x" * 100, number) for number in range(BARS_MAX + 2)]))
    assert texts(svg)[-1] == "and 2 more"


def test_a_long_label_keeps_who_reads_and_what() -> None:
    log = "persistent://shop/orders/of-all-the-shops-of-the-continent-partition-3"
    svg = parsed(BarChart("lag", [(f"subscription-of-audit {log}", 3), ("group " + log, 3)]))
    assert texts(svg)[::2] == [
        "subscription-of-a...he-continent-partition-3",
        "group shop/orders...he-continent-partition-3",
    ]
    short = parsed(BarChart("lag", [("audit persistent://public/default/orders-partition-0", 3)]))
    assert texts(short) == ["audit orders-partition-0", "3"]
