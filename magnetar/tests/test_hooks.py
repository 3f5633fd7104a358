"""Nobody hangs a function on another object's attribute: what an object is to call it is given when
it is made, or by a method of a declared port.

A hook set later is in no signature, so nobody sees that it is missing, or that two want it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from magnetar.tests.test_tidy import _is_test, _modules

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes that a statement assigns."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    else:
        return
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            if isinstance(one, ast.Attribute):
                yield one


def _methods(trees: Mapping[str, ast.Module]) -> frozenset[str]:
    """Names that are methods wherever they stand, and never a value's: of no field and property."""
    methods, values = set(), set()
    for tree in trees.values():
        for node in ast.walk(tree):
            values.update(target.attr for target in _targets(node))
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.AnnAssign):
                    values.add(ast.unparse(member.target))
                elif isinstance(member, Function):
                    read = any("property" in ast.unparse(each) for each in member.decorator_list)
                    (values if read else methods).add(member.name)
    return frozenset(methods - values)


@cache
def _ours() -> dict[str, ast.Module]:
    return {name: tree for name, tree in _modules().items() if not _is_test(name)}


def _is_function(value: ast.AST | None, methods: frozenset[str], functions: frozenset[str]) -> bool:
    if isinstance(value, ast.Tuple | ast.List):
        return any(_is_function(each, methods, functions) for each in value.elts)
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] == "partial"
    if isinstance(value, ast.Name):
        return value.id in functions
    if isinstance(value, ast.Attribute):
        return value.attr in methods
    return isinstance(value, ast.Lambda)


def _hooks(tree: ast.Module, methods: frozenset[str]) -> Iterator[str]:
    """Assignments of a function to an attribute of something other than `self`."""
    nodes = list(ast.walk(tree))
    names = {node.name for node in nodes if isinstance(node, Function)}
    values = {node.arg for node in nodes if isinstance(node, ast.arg)}
    values |= {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    functions = frozenset(names - values)
    for node in nodes:
        for target in _targets(node):
            others = ast.unparse(target.value) not in ("self", "cls")
            value = getattr(node, "value", None)
            named = target.attr.startswith("on_")
            if others and (named or _is_function(value, methods, functions)):
                yield f"{node.lineno}: {ast.unparse(node)}"  # type: ignore[attr-defined]


def test_functions_are_given_and_not_hung_on_attributes() -> None:
    methods = _methods(_ours())
    found = [f"{name}:{each}" for name, tree in _ours().items() for each in _hooks(tree, methods)]
    assert not found


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("link.hooks += [broker.dispatch, lambda: None]", True),
        ("store.on_delivering, store.on_delivered = link.begin, link.settle", True),
        ("journal.full = disk.ran_out", True),
        ("journal.full = partial(report, 'full')", True),
        ("connection.farewell = lambda: [said]", True),
        ("connection.farewell = say_goodbye", True),
        ("self._write = file.write_run", False),
        ("member.assignment = old.assignment", False),
        ("chain.segments = segments", False),
    ],
)
def test_a_hook_is_found(line: str, refused: bool) -> None:
    house = """
class Disk:
    def ran_out(self): ...
class Broker:
    def dispatch(self): ...
class Member:
    assignment: bytes
def say_goodbye(): ...
"""
    tree = ast.parse(house + line)
    assert bool(list(_hooks(tree, _methods({"x.py": tree})))) is refused
