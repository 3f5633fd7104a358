"""The reference of all settings, as the generated part of docs/configuration.md.

`python -m magnetar.settings.reference docs/configuration.md` writes it anew (`make docs`); a test
fails while the page and the settings differ.
"""

import sys
from pathlib import Path
from typing import Final

from magnetar.settings.registry import FLAGS, SECTIONS, SETTINGS, Setting
from magnetar.settings.toml import toml_value

BEGIN: Final = "<!-- written by `make docs`: begin -->\n"
END: Final = "<!-- written by `make docs`: end -->\n"


def reference() -> str:
    """One table for each section."""
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


def with_reference(page: str) -> str:
    """The page with its generated part replaced."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, "the page has no begin mark"
    assert end, "the page has no end mark"
    return head + BEGIN + "\n" + reference() + END + tail


def main() -> None:
    page = Path(sys.argv[1])
    page.write_text(with_reference(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
