"""What docs/kafka.md says of APIs and configs is so."""

from __future__ import annotations

import re
from pathlib import Path

from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.configs import TOPIC
from magnetar.wire.kafka.groups.configs import GROUP
from magnetar.wire.kafka.session.rights import OWN
from magnetar.wire.kafka.session.sasl import HELLO
from magnetar.wire.kafka.session.versions import SERVED

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "kafka.md").read_text(encoding="utf-8")


def test_the_table_of_apis_is_what_is_served() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\d+)(?:-(\d+))? \|", PAGE, re.MULTILINE)
    said = {int(key): (name, int(low), int(high or low)) for key, name, low, high in rows}
    assert said == {key: (APIS[key].name, *versions) for key, versions in SERVED.items()}


def test_every_request_has_its_right() -> None:
    (table,) = re.findall(r"^\| request \| rights \|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    said = dict(re.findall(r"^\| (\w+) \| (.+) \|$", table, re.MULTILINE))
    assert set(said) == {APIS[key].name for key in set(SERVED) - HELLO}
    for key, rights in OWN.items():
        assert said[APIS[key].name] == rights or (said[APIS[key].name], rights) == ("none", "")


def test_what_is_served_can_be_read() -> None:
    for key, (low, high) in SERVED.items():
        first, last = APIS[key].request.VERSIONS
        assert high <= last
        assert low >= first or key == 0


def test_the_tables_of_configs_are_complete() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `([^`]*)` \| (.*) \|$", PAGE, re.MULTILINE)
    said = {name: (default, results) for name, default, results in rows}
    all_of_them = (*TOPIC.values(), *GROUP.values())
    expected = {one.name: (one.default, one.documentation) for one in all_of_them}
    assert {name: said.get(name) for name in expected} == expected
