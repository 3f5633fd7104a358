"""Pages: what people see of a report, escaped."""

from html.parser import HTMLParser

from magnetar.spark_connector.jobs.reports import page
from magnetar.spark_connector.jobs.reports.tests.full_report import BEGIN, full_report


class Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_page() -> None:
    found = Words()
    made = page.of(full_report("<b>"), BEGIN)
    found.feed(made)
    assert found.open == []
    assert {"audit", "1 problem", "<b>", "a<b", "12,345", "3.0 MB"} <= set(found.words)
    assert made.count("<svg") == 2
    assert "http" not in made, "it needs nothing else"


def test_all_is_well() -> None:
    assert "Nothing is wrong." in page.of(full_report(), BEGIN)
