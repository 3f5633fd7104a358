import pytest

from bench.drive.cases import Protocol
from bench.drive.catalogue import CASES, UnknownCaseError, chosen


def test_cases_come_in_the_order_of_the_tables_whatever_the_order_they_are_named_in() -> None:
    assert [case.name for case in chosen(["cold", "publish"])] == ["publish", "cold"]
    assert [case.name for case in chosen(["publish", "publish"])] == ["publish"]


def test_a_group_is_many_cases_by_one_name() -> None:
    assert len(chosen(["all"])) == len(CASES)
    assert all(case.goal for case in chosen(["goals"]))
    assert {case.protocol for case in chosen(["kafka"])} == {Protocol.KAFKA}
    assert len(chosen(["kafka", "pulsar", "mqtt"])) == len(CASES)


def test_an_unknown_case_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownCaseError, match="no such case: nope; there are: publish"):
        chosen(["nope"])
