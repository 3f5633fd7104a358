from bench.drive.cases import Kind, Protocol, arguments, spelled
from bench.drive.catalogue import CASES


def test_a_case_becomes_options_of_the_generator() -> None:
    given = arguments(CASES["batch-both"], "t", seconds=4.0, warmup=1.0)
    options = dict(zip(given[::2], given[1::2], strict=True))
    assert options["--mode"] == "both"
    assert options["--batch"] == "1000"
    assert options["--topic"] == "t"
    assert options["--seconds"] == "4.0"


def test_a_case_of_many_topics_numbers_them() -> None:
    given = arguments(CASES["connections-100-topics"], "t", seconds=1.0, warmup=0.0)
    assert "t-%d" in given


def test_every_load_says_its_mode_and_every_backlog_its_size() -> None:
    for case in CASES.values():
        if case.kind is Kind.LOAD:
            assert case.options["mode"] in ("publish", "both")
        if case.kind is Kind.BACKLOG:
            assert case.backlog is not None
            assert 0 < case.backlog.messages <= case.backlog.messages_full
        assert (case.kind is Kind.MEMORY) == (case.memory is not None)


def test_an_option_without_a_value_is_a_flag() -> None:
    assert spelled({"mode": "both", "remove": ""}) == ["--mode", "both", "--remove"]


def test_what_is_written_in_one_protocol_and_read_in_another_needs_both() -> None:
    assert CASES["kafka-crossing"].protocols == {Protocol.PULSAR, Protocol.KAFKA}
    assert CASES["kafka-fetch-cold"].protocols == {Protocol.KAFKA}
