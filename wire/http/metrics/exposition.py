"""Prometheus' text format: writes families of samples. Pure.

Hand-written, since it is short and must work in slices: with thousands of topics a library that
renders everything at once would block the loop for a second. The tests check the output with
Prometheus' own parser.

Invariant: the samples of a family follow each other, after its `# TYPE` line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Family(Struct):
    """One metric, with a sample per combination of labels."""

    name: str
    kind: Literal["gauge", "counter", "histogram", "summary", "untyped"]
    about: str
    samples: list[str]
    """Lines, ready to be written."""

    def add(self, value: float, labels: str = "", suffix: str = "") -> None:
        """Add a sample; `labels` come from `label_text`."""
        self.samples.append(f"{self.name}{suffix}{labels} {number(value)}")


def gauge(name: str, about: str, value: float | None = None) -> Family:
    """A gauge; `value` becomes its only sample."""
    return _family(name, "gauge", about, value)


def counter(name: str, about: str, value: float | None = None) -> Family:
    """A counter; `value` becomes its only sample."""
    return _family(name, "counter", about, value)


def _family(
    name: str, kind: Literal["gauge", "counter"], about: str, value: float | None
) -> Family:
    family = Family(name, kind, about, [])
    if value is not None:
        family.add(value)
    return family


def histogram(
    name: str, about: str, bounds: Sequence[float], counts: Sequence[int], total: float
) -> Family:
    """A histogram; the last of `counts` is for values beyond the last bound."""
    family = Family(name, "histogram", about, [])
    below = 0
    for bound, count in zip((*bounds, float("inf")), counts, strict=True):
        below += count
        family.add(below, label_text((("le", number(bound)),)), "_bucket")
    family.add(total, suffix="_sum")
    family.add(below, suffix="_count")
    return family


def label_text(labels: Iterable[tuple[str, str]]) -> str:
    """`{name="value",...}`, escaped."""
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def text(families: Iterable[Family]) -> str:
    """The whole page; families without samples are left out."""
    return "".join(piece for family in families for piece in pieces(family))


def pieces(family: Family, samples_max: int = 1_000) -> Iterator[str]:
    """One family, some samples at a time: with thousands of topics it is a megabyte."""
    samples = family.samples
    if not samples:
        return
    about = family.about.replace("\\", r"\\").replace("\n", r"\n")
    head = f"# HELP {family.name} {about}\n# TYPE {family.name} {family.kind}\n"
    for start in range(0, len(samples), samples_max):
        yield head + "\n".join(samples[start : start + samples_max]) + "\n"
        head = ""


def number(value: float) -> str:
    """A number in the format's spelling: whole numbers without a point, infinity as +Inf."""
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
