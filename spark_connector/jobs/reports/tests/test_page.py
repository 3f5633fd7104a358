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


def test_numbers_stand_below_their_names() -> None:
    made = page.of(full_report(), BEGIN)
    assert '<th>topic</th><th class="number">messages</th><th>first</th>' in made
    assert '<td>a&lt;b</td><td class="number">7</td>' in made
    assert "2026-01-02 03:04:05 UTC" in made


def test_it_fits_a_telephone() -> None:
    """Tables and charts are wider: they move in a frame of their own."""
    made = page.of(full_report(), BEGIN)
    assert '<meta name="viewport" content="width=device-width' in made
    assert made.count('<div class="wide"><svg') == 2
    assert made.count('<div class="wide"><table') == 2
