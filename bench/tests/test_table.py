from bench.drive.measure import Sample
from bench.drive.table import join, markdown, rows, text


def sample(server: str, number: int, ok: bool = True, **figures: float) -> Sample:
    return Sample(case="publish", server=server, round=number, ok=ok, figures=figures)


def test_rounds_are_joined_by_the_median_and_maxima_by_the_largest() -> None:
    rounds = [sample("a", n, cpu_us=cpu, max_ms=cpu) for n, cpu in enumerate((3.0, 1.0, 2.0))]
    (joined,) = join(rounds)
    assert joined.rounds == 3
    assert joined.figures == {"cpu_us": 2.0, "max_ms": 3.0}


def test_latency_is_joined_over_all_rounds() -> None:
    fast = Sample("publish", "a", 0, True, {"p99_ms": 1.0}, publish_buckets=[(1_000_000, 99)])
    slow = Sample("publish", "a", 1, True, {"p99_ms": 5.0}, publish_buckets=[(5_000_000, 1)])
    assert join([fast, slow])[0].figures["p99_ms"] == 5.0


def test_two_servers_get_a_ratio_of_the_first_to_the_second() -> None:
    table = rows(join([sample("ours", 0, cpu_us=2.0), sample("peer", 0, cpu_us=8.0)]))
    assert table[0] == ["case", "server", "CPU us/msg"]
    assert table[-1] == ["", "ours / peer", "x0.25"]


def test_a_failed_round_marks_the_row() -> None:
    results = join([sample("ours", 0, cpu_us=1.0), sample("ours", 1, ok=False, cpu_us=1.0)])
    assert "ours FAILED" in text(results)


def test_markdown_names_what_each_case_is() -> None:
    page = markdown(join([sample("ours", 0, cpu_us=1.0)]))
    assert page.splitlines()[1] == "|---|---|--:|"
    assert "- `publish`: 100 B publish, 1000 in flight" in page
