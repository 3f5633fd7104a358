"""Which of a module and its compiled self is imported."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from magnetar.core.native import sources
from magnetar.core.testing.hot_modules import hot_modules

ROOT = Path(__file__).resolve().parents[3]
ASK = "import magnetar.core.link.loop as it; from magnetar.core.native import sources; "


def answer(question: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{ASK}print({question})"],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def nodes(module: str) -> Iterator[ast.AST]:
    return ast.walk(ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text()))


def classes(module: str) -> Iterator[ast.ClassDef]:
    return (node for node in nodes(module) if isinstance(node, ast.ClassDef))


def test_sources_can_be_asked_for() -> None:
    assert answer("it.__file__", MAGNETAR_PURE="1").endswith("/loop.py")
    assert answer("sources.described()", MAGNETAR_PURE="1") == "interpreted (MAGNETAR_PURE is set)"


def test_unit_tests_run_sources() -> None:
    from magnetar.core.link import loop

    assert loop.__file__.endswith("/loop.py")


def test_what_is_described_is_what_runs() -> None:
    compiled = answer("sources.described() == 'compiled'", MAGNETAR_PURE="0")
    assert answer("not it.__file__.endswith('.py')", MAGNETAR_PURE="0") == compiled


def test_runs_of_entries_are_none_of_the_garbage_collectors_concern() -> None:
    """Tens of thousands of them are in memory."""
    compiled = answer("sources.described() == 'compiled'", MAGNETAR_PURE="0")
    tracked = (
        "__import__('gc').is_tracked(__import__('magnetar.bookie.format.entries',"
        " fromlist=['run_of']).run_of(bytes(40)))"
    )
    assert answer(f"not {tracked}", MAGNETAR_PURE="0") == compiled


def test_where_they_can_be_built_they_are() -> None:
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which("cc") is None or not headers.exists():
        pytest.skip("no C compiler, or no Python.h")
    said = answer("sources.described()", MAGNETAR_PURE="0")
    assert said == "compiled" or "sources have changed" in said


def test_sources_that_are_newer(tmp_path: Path) -> None:
    for room in sources.ROOMS:
        (tmp_path / room / "inner" / "tests").mkdir(parents=True)
    inner = tmp_path / "core" / "inner"
    for path, changed in ((inner / "old.py", 100), (inner / "tests" / "test_old.py", 300)):
        path.touch()
        os.utime(path, (changed, changed))
    assert not sources.has_newer(tmp_path, 200)
    os.utime(inner / "old.py", (201, 201))
    assert sources.has_newer(tmp_path, 200)


def test_no_interpreted_class_has_a_compiled_base() -> None:
    """Such a class could be defined, and could have no instances."""
    compiled = hot_modules(ROOT)
    homes = {node.name: module for module in compiled for node in classes(module)}
    wrong = []
    for room in sources.ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if module in compiled or "tests" in path.parts:
                continue
            text = path.read_text()
            for node in classes(module):
                for base in node.bases:
                    home = homes.get(ast.unparse(base).partition("[")[0])
                    if home and f"magnetar.{home} import" in text:
                        wrong.append(f"{module}.{node.name} inherits from {home}")
    assert wrong == []


def test_structs_of_compiled_modules_inherit_their_options() -> None:
    """What a class statement says beside its bases is lost (`core/kernel/structs.py`)."""
    lost = [
        f"{module}.{node.name}"
        for module in hot_modules(ROOT)
        for node in classes(module)
        if node.keywords and {"Struct", "msgspec.Struct"} & {ast.unparse(b) for b in node.bases}
    ]
    assert lost == []
    assert answer("it.LinkStatistics.__struct_config__.frozen", MAGNETAR_PURE="0") == "True"


def test_nothing_is_decoded_in_compiled_modules() -> None:
    """Of the types of a class's fields too little is left for msgspec to decode by them."""
    decoding = [
        module
        for module in hot_modules(ROOT)
        if "Decoder(" in (ROOT / f"{module.replace('.', '/')}.py").read_text()
    ]
    assert decoding == []


def bounds_with_calls(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        for bound in (node.slice.lower, node.slice.upper):
            calls = [part for part in ast.walk(bound or node) if isinstance(part, ast.Call)]
            if bound is not None and any(ast.unparse(call.func) not in PURE for call in calls):
                yield bound


PURE = {"len", "min", "max", "bisect_left", "header.read", "_body_size", "wire.feed"}
"""Functions without an effect; and one whose slice is of bytes."""


def test_no_call_with_an_effect_bounds_a_slice() -> None:
    """mypyc evaluates a bound twice, unless it knows that the slice is of bytes, str, list or
    tuple: what was left of a request was sent to a bookie twice so.
    """
    wrong = [
        f"{module}:{bound.lineno}"
        for module in hot_modules(ROOT)
        for node in nodes(module)
        for bound in bounds_with_calls(node)
    ]
    assert wrong == []


AVRO = "spark_connector.values.avro_decoder"
RARE = {
    *(f"{AVRO}.{name}" for name in ("decoder_of", "_fixed", "_enum", "_record", "_array", "_map")),
    *(f"{AVRO}.{name}" for name in ("_union", "_member", "_decimal", "_millis", "_uuid")),
    "bookie.client.quorum.writer._record",
    "bookie.client.quorum.writer.close",
    "bookie.client.writer.close",
    "bookie.server.journal.kernel_writer._prepare",
    "bookie.server.journal.kernel_writer._prepared",
}
"""Functions that seldom run, and hold little: those of Avro once for each part of a schema."""


def test_no_function_that_runs_often_defines_another() -> None:
    """Compiled, the two refer to each other: what they use lives until the garbage collector runs.
    A hundred publishes of 1 MB were kept so.
    """
    holding = {
        f"{module}.{node.name}"
        for module in hot_modules(ROOT)
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if inner is not node and isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert holding == RARE
