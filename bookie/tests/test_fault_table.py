"""The table of faults in `docs/storage.md`: each row names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = "## Faults, and the tests that cause them"


def rows() -> list[str]:
    text = (ROOT / "docs/storage.md").read_text().split(TABLE)[1].split("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| ")][1:]


def test_each_row_has_a_test_that_exists():
    assert len(rows()) >= 20
    for row in rows():
        fault, _, tests = row.strip("| ").split(" | ")
        named = re.findall(r"`([\w/.]+\.py)(?:::(\w+))?`", tests)
        assert named, fault
        for path, name in named:
            text = (ROOT / path).read_text()
            assert f"def {name or 'test_'}" in text, f"{path}::{name}"
