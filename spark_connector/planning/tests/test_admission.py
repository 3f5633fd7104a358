"""Limited batches: no more than the limit, in proportion, and nobody starves."""

from hypothesis import given
from hypothesis import strategies as st

from magnetar.spark_connector.planning.admission import shares_of

ROWS = st.dictionaries(st.text("abcd", min_size=1, max_size=2), st.integers(0, 1000), min_size=1)


@given(rows=ROWS, admitted=st.integers(0, 3000))
def test_shares_add_up(rows: dict[str, int], admitted: int) -> None:
    shares = shares_of(rows, min(admitted, sum(rows.values())))
    assert sum(shares.values()) == min(admitted, sum(rows.values()))
    assert all(0 <= shares[topic] <= count for topic, count in rows.items())


def test_in_proportion_and_the_rest_to_the_longest() -> None:
    assert shares_of({"a": 100, "b": 300}, 40) == {"a": 10, "b": 30}
    assert shares_of({"a": 1, "b": 5, "c": 9}, 2) == {"a": 0, "b": 0, "c": 2}
    assert shares_of({"a": 5, "b": 5, "c": 0}, 1) == {"a": 1, "b": 0, "c": 0}


@given(rows=ROWS, admitted=st.integers(1, 50))
def test_every_backlog_ends(rows: dict[str, int], admitted: int) -> None:
    for _ in range(sum(rows.values()) // admitted + len(rows) + 1):
        shares = shares_of(rows, min(admitted, sum(rows.values())))
        rows = {topic: count - shares[topic] for topic, count in rows.items()}
    assert not any(rows.values())
