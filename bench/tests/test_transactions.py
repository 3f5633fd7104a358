"""Rounds of two servers, and what is said of them."""

from bench.transactions.__main__ import median, ratios, summary
from bench.transactions.load import Round

OURS = [Round(300.0, 2.0, 1.0, 5.0, 20.0), Round(200.0, 3.0, 1.0, 6.0, 30.0)]
THEIRS = [Round(100.0, 4.0, 1.0, 9.0, 40.0), Round(100.0, 4.0, 1.0, 8.0, 40.0)]


def test_medians_are_of_each_figure() -> None:
    assert median([*OURS, Round(250.0, 9.0, 9.0, 9.0, 9.0)]) == Round(250.0, 3.0, 1.0, 6.0, 20.0)


def test_ratios_are_of_pairs() -> None:
    assert ratios(OURS, THEIRS, "per_second") == "2.50 (2.00 to 3.00)"
    text = summary({"a": OURS, "b": THEIRS}, [0.5, 0.7, 9.0])
    assert "on the bare disk 0.70 ms" in text
    assert "ratio of 2 pairs: rate 2.50 (2.00 to 3.00), CPU 0.62" in text
    assert "ratio" not in summary({"a": OURS}, [0.5])
