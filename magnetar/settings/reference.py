"""The reference of all settings, and the generated parts of the pages in docs.

`make docs` writes them; tests fail while a page is out of date.
"""

import sys
from pathlib import Path
from typing import Final

from magnetar.settings.policies import policy_table
from magnetar.settings.registry import FLAGS, SECTIONS, SETTINGS, Setting
from magnetar.settings.toml import toml_value

BEGIN: Final = "<!-- written by `make docs`: begin -->\n"
END: Final = "<!-- written by `make docs`: end -->\n"


def reference() -> str:
    """All settings: one table for each section."""
    lines = []
    for section, kind in SECTIONS.items():
        summary = (kind.__doc__ or "").splitlines()[0]
        lines += [f"### `[{section}]`", "", summary, ""]
        lines += ["| setting | default | takes | meaning |", "|---|---|---|---|"]
        lines += [_row(setting) for setting in SETTINGS.values() if setting.section == section]
        lines.append("")
    return "\n".join(lines)


def _row(setting: Setting) -> str:
    flags = [flag for flag, path in FLAGS.items() if path == setting.path]
    flag = f" Flag `{flags[0]}`." if flags else ""
    default = f"`{toml_value(setting.default)}`"
    return f"| `{setting.key}` | {default} | {setting.expected} | {setting.description}{flag} |"


def with_part(page: str, part: str) -> str:
    """The page with its generated part replaced."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, "the page has no begin mark"
    assert end, "the page has no end mark"
    return head + BEGIN + "\n" + part + END + tail


def main() -> None:
    for page, part in ("configuration.md", reference()), ("admin.md", policy_table()):
        path = Path(sys.argv[1], page)
        path.write_text(with_part(path.read_text(encoding="utf-8"), part), encoding="utf-8")


if __name__ == "__main__":
    main()
