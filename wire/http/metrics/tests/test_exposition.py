"""Prometheus' own parser reads what we write."""

from prometheus_client.parser import text_string_to_metric_families

from magnetar.wire.http.metrics.exposition import (
    Family,
    counter,
    gauge,
    histogram,
    label_text,
    pieces,
    text,
)


def read(*families: Family) -> dict[str, list[tuple[str, dict[str, str], float]]]:
    return {
        found.name: [(sample.name, sample.labels, sample.value) for sample in found.samples]
        for found in text_string_to_metric_families(text(families))
    }


def test_single_values() -> None:
    assert read(gauge("a", "about a", 1.5), counter("b_total", "about b", 3)) == {
        "a": [("a", {}, 1.5)],
        "b": [("b_total", {}, 3.0)],
    }


def test_labels_are_escaped() -> None:
    value = 'a"b\\c\nd'
    family = gauge("a", "line\nbreak \\ here")
    family.add(1, label_text((("topic", value), ("x", "y"))))
    assert read(family) == {"a": [("a", {"topic": value, "x": "y"}, 1.0)]}


def test_histograms_add_up() -> None:
    found = read(histogram("h", "seconds", (0.1, 1.0), (2, 1, 1), 5.5))["h"]
    assert [(name, labels.get("le"), value) for name, labels, value in found] == [
        ("h_bucket", "0.1", 2.0),
        ("h_bucket", "1", 3.0),
        ("h_bucket", "+Inf", 4.0),
        ("h_sum", None, 5.5),
        ("h_count", None, 4.0),
    ]


def test_families_without_samples_are_left_out() -> None:
    assert text([gauge("a", "nothing")]) == ""


def test_a_long_family_comes_in_pieces() -> None:
    family = gauge("a", "about a")
    for number in range(5):
        family.add(number, label_text((("n", str(number)),)))
    parts = list(pieces(family, samples_max=2))
    assert len(parts) == 3
    assert "".join(parts) == text([family])
    assert parts[0].startswith("# HELP a about a\n# TYPE a gauge\n")
    assert list(pieces(gauge("b", "no samples"))) == []
