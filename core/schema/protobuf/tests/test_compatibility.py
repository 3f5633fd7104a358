"""Which schema in protobuf's language may follow which."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.core.schema.protobuf.compatibility import incompatibility
from magnetar.core.schema.protobuf.reader import read
from magnetar.core.schema.protobuf.tests.table import SCHEMAS, imports_of
from magnetar.core.schema.protobuf.tests.test_reader import of

NEW_READS_OLD = [
    ("", "message N {}"),
    ("message M { string a = 1; }", "message M { string b = 1; }"),
    ("message M { string a = 1; }", "message M { bytes a = 1; }"),
    ("message M { string a = 1; }", "message M { repeated string a = 1; }"),
    ("message M { string a = 1; }", "message M {}"),
    ("message M {}", "message M { string a = 1; }"),
    ("message M { int32 a = 1; }", "message M { bool a = 1; }"),
    ("message M { uint64 a = 1; }", "message M { E a = 1; } enum E { A = 0; }"),
    ("message M { sint32 a = 1; fixed32 b = 2; }", "message M { sint64 a = 1; sfixed32 b = 2; }"),
    ("message M { E a = 1; } enum E { A = 0; B = 1; }", "message M { E a = 1; } enum E { C = 0; }"),
    ("enum E { A = 0; }", ""),
    ("message A {} message B {}", "message B {} message A {}"),
    ("message M { string a = 1; }", "message M { oneof o { string a = 1; } }"),
    ("message M { string a = 1; }", "message M { oneof o { string a = 1; int32 b = 2; } }"),
    ("message M { oneof o { string a = 1; } }", "message M { string a = 1; }"),
    ("message M { oneof o { string a = 1; int32 b = 2; } }",
     "message M { oneof p { string a = 1; int32 b = 2; int32 c = 3; } }"),
    ("message M { oneof o { string a = 1; } }", "message M {}"),
    ("message M { string a = 1; }", "message M { optional string a = 1; }"),
    ("message M { map<string, int32> a = 1; }", "message M { map<bytes_not, int32> a = 1; }"
     .replace("bytes_not", "string").replace("int32", "int64")),
    ("message M { map<string, int32> a = 1; }", "message M {}"),
    ("message M { M a = 1; }", "message M { repeated M a = 1; }"),
    ("message M { int32 a = 1; }", "message M { repeated int32 a = 1; }"),  # no label before
]  # fmt: skip
NEW_DOES_NOT = [
    ("message M {}", ""),
    ("message M { message N {} }", "message M {}"),
    ("message M { string a = 1; }", "message M { int32 a = 1; }"),
    ("message M { int32 a = 1; }", "message M { sint32 a = 1; }"),
    ("message M { optional int32 a = 1; }", "message M { repeated int32 a = 1; }"),
    ("message M { float a = 1; }", "message M { double a = 1; }"),
    ("message M { fixed32 a = 1; }", "message M { fixed64 a = 1; }"),
    ("message M { N a = 1; } message N {} message O {}",
     "message M { O a = 1; } message N {} message O {}"),
    ("message M { N a = 1; } message N { string a = 1; }",
     "message M { N a = 1; } message N { bool a = 1; }"),
    ("message M { string a = 1; string b = 2; }",
     "message M { oneof o { string a = 1; string b = 2; } }"),
    ("message M { string a = 1; oneof o { string b = 2; } }",
     "message M { oneof o { string a = 1; string b = 2; } }"),
    ("message M { oneof o { string a = 1; int32 b = 2; } }",
     "message M { oneof o { string a = 1; } }"),
    ("message M { oneof o { string a = 1; } }", "message M { oneof p { int32 a = 1; } }"),
    ("message M { map<string, int32> a = 1; }", "message M { map<string, string> a = 1; }"),
    ("message M { map<string, int32> a = 1; }", "message M { map<int32, int32> a = 1; }"),
    ("message M { map<string, int32> a = 1; }", "message M { repeated string a = 1; }"),
    ("message M { message N { string a = 1; } }", "message M { message N { int32 a = 1; } }"),
]  # fmt: skip
REQUIRED = [
    ("message M { required string a = 1; }", "message M {}"),
    ("message M {}", "message M { required string a = 1; }"),
]


@pytest.mark.parametrize(("old", "new"), NEW_READS_OLD)
def test_the_new_reads_what_the_old_wrote(old: str, new: str) -> None:
    assert incompatibility(of(old), of(new)) == ""


@pytest.mark.parametrize(("old", "new"), NEW_DOES_NOT)
def test_the_new_may_not_read_it(old: str, new: str) -> None:
    assert incompatibility(of(old), of(new))
    assert incompatibility(of(old), of(old)) == incompatibility(of(new), of(new)) == ""


@pytest.mark.parametrize(("old", "new"), REQUIRED)
def test_required_fields_stay_as_they_are(old: str, new: str) -> None:
    assert "required" in incompatibility(of(old, ""), of(new, ""))


def test_the_package_stays() -> None:
    old, new = of("package a; message M {}"), of("package b; message M {}")
    assert incompatibility(old, new) == "package a became b"


def test_names_within_the_package_are_compared() -> None:
    text = "package a; message M { N n = 1; } message N {}"
    assert incompatibility(of(text), of(text.replace("N n", ".a.N n"))) == ""


def test_a_reason_says_where() -> None:
    reason = incompatibility(of("message M { bool a = 7; }"), of("message M { string a = 7; }"))
    assert reason == "M: field 7: int32 became string"


def test_the_verdicts_of_confluents_library() -> None:
    """On every pair of the table."""
    rows = Path(__file__).with_name("verdicts.txt").read_text().split()
    files = [read(text.encode(), imports_of(imports)) for text, imports in SCHEMAS]
    ours = [["n" if incompatibility(a, b) else "y" for b in files] for a in files]
    others = [
        (SCHEMAS[at], SCHEMAS[to], theirs)
        for at, row in enumerate(rows)
        for to, theirs in enumerate(row)
        if theirs != ours[at][to]
    ]
    assert others == []
    assert len(rows) == len(SCHEMAS)
