"""What pairs of rounds have shown."""

from bench.drive.pairs import row


def test_the_median_of_the_pairs_is_shown() -> None:
    shown = row("x", [(1.0, 1.0), (2.0, 2.2), (4.0, 4.8)])
    assert shown == "| x | 2.000 | 2.200 | 1.100 | 1.050 to 1.150 | 1.000 to 1.200 |"
    shown = row("x", [(2.0, 3.0)])
    assert shown == "| x | 2.000 | 3.000 | 1.500 | 1.500 to 1.500 | 1.500 to 1.500 |"
