"""The house rules that can be counted: sizes, docstrings, mirrored tests, purity, READMEs.

Budgets are failures here; smells are for readers to judge. What is owed stands in `debts.toml`
beside this file. A debt that has been paid must be struck from it, so that the list only shrinks:
`python magnetar/tests/test_tidy.py` writes it anew. Imports between packages are import-linter's
part (pyproject.toml), style is ruff's.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from magnetar.core.policy.declaration import levels_of
from magnetar.core.policy.policies import Effective
from magnetar.settings import SETTINGS

ROOT = Path(__file__).parents[2]
DEBTS = Path(__file__).with_name("debts.toml")
BUILT = "target"
"""Folders of what tests in other languages are made into, with packages of others."""
PACKAGES = ("magnetar", "core", "bookie", "wire")
OTHERS = ("interop_tests", "bench")
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
ARGUMENTS_MAX = 6

PURE = (
    "core/kernel/errors.py",
    "core/kernel/names.py",
    "core/policy/policies.py",
    "core/entry/*",
    "core/dispatch/*",
    "core/ports/*",
    "bookie/format/*",
    "bookie/cluster/handshake.py",
    "core/metadata/zookeeper/addresses.py",
    "core/metadata/zookeeper/names.py",
    "core/metadata/zookeeper/requests.py",
    "core/metadata/zookeeper/watches.py",
    "core/link/wire.py",
    "core/ledger/log/chain.py",
    "core/ledger/cursor/acks.py",
    "core/ledger/log/trim.py",
    "core/ledger/formats.py",
    "wire/pulsar/*.py",
    "magnetar/settings/*",
)
"""Besides every module whose docstring says that it is pure or sans-I/O."""
NOT_PURE = ("wire/pulsar/session/*", "magnetar/settings/reference.py")
SAYS_PURE = re.compile(r"\bPure\b[.:]|[Ss]ans-I/O\. ")
IMPURE = frozenset(
    [
        *("trio", "asyncio", "socket", "ssl", "select", "os", "subprocess", "signal"),
        *("time", "random", "threading", "logging"),
    ]
)

MACHINE = ("bookie/machine/*", "bookie/reading/connection.py", "bookie/reading/exchange.py")
"""What implements the ports that storage runs on (`core/ports/machine.py`); and the sockets of who
reads from bookies without a loop, which are no part of storage.
"""
SYSTEM = frozenset(
    [
        *("os", "shutil", "pathlib", "tempfile", "fcntl", "mmap", "ctypes", "select", "platform"),
        *("time", "threading", "concurrent", "subprocess", "socket", "random", "secrets"),
        *("rocksdict",),
    ]
)
SYSTEM_CALLS = frozenset(["to_thread", "from_thread", "current_trio_token", "uuid1", "uuid4"])

COVERED_ELSEWHERE = {
    "core/broker/schema_admission.py": "wire/pulsar/session/tests/test_schemas.py",
    "core/security/actions.py": "core/security/tests/test_judge.py",
    "core/security/identity.py": "core/security/tests/test_judge.py",
    "magnetar/settings/security.py": "magnetar/security/tests/test_access.py",
    "bookie/reading/zookeeper.py": "interop_tests/bookkeeper/test_reading.py",
    "magnetar/cli/bookie_checks.py": "interop_tests/bookkeeper/test_recovery_tools.py",
    "magnetar/cli/bookie_cluster.py": "interop_tests/bookkeeper/test_tools.py",
    "magnetar/cli/cluster_metadata.py": "interop_tests/bookkeeper/test_tools.py",
    "magnetar/cli/recovery.py": "interop_tests/bookkeeper/test_recovery.py",
    "magnetar/cli/gateway.py": "interop_tests/bookkeeper/test_gateway.py",
    "magnetar/gateway_server.py": "interop_tests/bookkeeper/test_gateway.py",
    "magnetar/storage/cluster.py": "interop_tests/bookkeeper/test_gateway.py",
    "magnetar/storage/embedded.py": "magnetar/tests/test_server.py",
    "magnetar/cli/standalone.py": "magnetar/tests/test_server.py",
    "core/entry/pulsar/metadata.py": "wire/pulsar/tests/test_core_metadata.py",
    "core/testing/note_form.py": "core/entry/tests/test_form.py",
    "core/metadata/zookeeper/nodes.py": "interop_tests/bookkeeper/test_zookeeper_faults.py",
    "core/metadata/zookeeper/session.py": "interop_tests/bookkeeper/test_zookeeper_faults.py",
    "core/metadata/zookeeper/sessions.py": "interop_tests/bookkeeper/test_zookeeper_faults.py",
    "core/metadata/zookeeper/slots.py": "interop_tests/bookkeeper/test_zookeeper_faults.py",
    "core/metadata/zookeeper/store.py": "interop_tests/bookkeeper/test_zookeeper_store.py",
}
"""Modules that are tested through another one: a whole process, protobuf's own codec (which core
may not import), a fake that passes the test of what it stands for, and a real ZooKeeper."""

METADATA_STORES = re.compile(r"(^|[._])(metadata|store)$")
"""How those who write to a metadata store call it."""
STORES = (
    "core/ports/metadata_store.py",
    "core/metadata/*",
    "core/testing/metadata.py",
)
EXPECTED_ARGUMENTS = {"put": 3, "delete": 2}

BAD_NAMES = re.compile(r"^(utils?|helpers?|common|misc|managers?|impl)$")
BAD_CLASSES = re.compile(r"(Manager|Helper|Impl|Utils?)$")


PROTOCOLS = re.compile(r"kafka|pulsar|mqtt", re.IGNORECASE)
FORMS = ("core/entry/kafka/*", "core/entry/mqtt/*", "core/entry/pulsar/*", "core/entry/forms.py")
"""Who may speak a protocol's words in core."""
STORED_NAMES = {
    "core/kernel/names.py": {"pulsar.repl.", "pulsar.dedup", "pulsar/system"},
    "core/ledger/cursor/cursor_store.py": {"pulsar/cursor"},
    "core/ledger/ledger_owner.py": {"pulsar", "pulsar/managed-ledger"},
    "core/topic/shadow_topic.py": {"PULSAR.SHADOW_SOURCE"},
    "core/topic/publishing/deduplication.py": {"pulsar.dedup"},
    "core/security/acl_store.py": {"/kafka-acl", "/kafka-acl-extended"},
    "core/security/actions.py": {"kafka-cluster"},
}
"""Names in Pulsar's and Kafka's own stored formats, which their tools read; they decide only what
is reserved for the server.
"""


@cache
def _modules() -> dict[str, ast.Module]:
    """Every module that people write, by its path from the root."""
    found = {}
    for package in (*PACKAGES, *OTHERS):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.endswith("_pb2.py") and "/out/" not in name and "/target/" not in name:
                found[name] = ast.parse(path.read_text(encoding="utf-8"), name)
    return found


def _is_test(name: str) -> bool:
    return "/tests/" in name or name.startswith("interop_tests/") or name.endswith("conftest.py")


@cache
def _debts() -> dict[str, list[str]]:
    return tomllib.loads(Path(__file__).with_name("debts.toml").read_text(encoding="utf-8"))


def _functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, tree in _modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


def test_files_are_short() -> None:
    sizes = {name: (ROOT / name).read_bytes().count(b"\n") for name in _modules()}
    assert not {name: size for name, size in sizes.items() if size > FILE_LINES_MAX}


def test_functions_are_short() -> None:
    long = set()
    for name, function in _functions():
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            long.add(f"{name}: {function.name} has {lines} lines")
    assert not long


def test_functions_take_few_arguments() -> None:
    many = set()
    for name, function in _functions():
        given = function.args
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > ARGUMENTS_MAX and not _is_test(name):
            many.add(f"{name}: {function.name} takes {count}")
    assert not many


def test_modules_say_what_they_are() -> None:
    silent = {
        name
        for name, tree in _modules().items()
        if tree.body and not ast.get_docstring(tree) and not _is_test(name)
    }
    assert not silent


def test_names_say_what_things_are() -> None:
    bad = {name for name in _modules() if BAD_NAMES.match(Path(name).stem)}
    for name, tree in _modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and BAD_CLASSES.search(node.name):
                bad.add(f"{name}: {node.name}")
    assert not bad


def _unconditional(name: str, tree: ast.Module) -> Iterator[str]:
    """Writes to a metadata store that do not say which version they expect."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        needed = EXPECTED_ARGUMENTS.get(node.func.attr)
        receiver = ast.unparse(node.func.value)
        if needed is None or not METADATA_STORES.search(receiver):
            continue
        given = [*node.args, *(each.value for each in node.keywords)]
        says_none = any(isinstance(each, ast.Constant) and each.value is None for each in given)
        if len(given) < needed or says_none:
            yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def test_every_metadata_write_is_conditional() -> None:
    """What an owner has lost it must not write over (`core/cluster/owned_record.py`)."""
    found = [
        each
        for name, tree in _modules().items()
        if not _is_test(name) and not any(fnmatch(name, pattern) for pattern in STORES)
        for each in _unconditional(name, tree)
    ]
    assert not found


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        ("await self._metadata.put(path, value)", True),
        ("await metadata.put(path, value, None)", True),
        ("await self._storage.metadata.put(path, value, expected=None)", True),
        ("await broker.metadata.delete(path)", True),
        ("await store.put(path, value, version)", False),
        ("await store.put(path, value, expected=ABSENT)", False),
        ("await store.delete(path, version)", False),
        ("queue.put(item)", False),
    ],
)
def test_an_unconditional_write_is_found(call: str, refused: bool) -> None:
    assert bool(list(_unconditional("x.py", ast.parse(call)))) is refused


def _words(tree: ast.Module) -> Iterator[str]:
    """Names and texts of a module, but for its prose, which may cite a protocol's sources."""
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in prose:
            value = node.value
            yield value.decode("latin-1") if isinstance(value, bytes) else str(value)
        for field in ("id", "attr", "name", "arg", "module"):
            found = getattr(node, field, None)
            if isinstance(found, str):
                yield found


def test_only_a_forms_folder_speaks_its_protocols_words() -> None:
    found = set()
    for name, tree in _modules().items():
        ours = name.startswith("core/") and not _is_test(name)
        if ours and not any(fnmatch(name, pattern) for pattern in FORMS):
            spoken = {word for word in _words(tree) if PROTOCOLS.search(word)}
            found |= {(name, word) for word in spoken - STORED_NAMES.get(name, set())}
    assert not found


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def to_kafka(): pass", {"to_kafka"}),
        ("from magnetar.core.entry.pulsar import form", {"magnetar.core.entry.pulsar", "form"}),
        ("x = b'kafka.headers'", {"x", "kafka.headers"}),
        ("'''As Kafka does.'''", set()),
    ],
)
def test_words_are_found(code: str, words: set[str]) -> None:
    assert set(_words(ast.parse(code))) == words


def test_two_classes_share_a_name_only_if_the_glossary_says_why() -> None:
    homes: dict[str, set[str]] = {}
    for name, tree in _modules().items():
        if name.startswith(PACKAGES) and not _is_test(name):
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    homes.setdefault(node.name, set()).add(name)
    shared = {name for name, where in homes.items() if len(where) > 1}
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    table = glossary.partition("## Names that two classes share")[2]
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]*\|", table, re.MULTILINE))))
    assert shared == explained, {name: homes.get(name) for name in shared ^ explained}


def _only_declares(tree: ast.Module) -> bool:
    """Ports, settings, options, errors: no function of it has a body."""
    return not any(
        not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
    )


def _without_mirrored_test() -> set[str]:
    owed = set()
    for name, tree in _modules().items():
        path = Path(name)
        ours = name.startswith(PACKAGES) and not _is_test(name)
        if not ours or path.name == "__init__.py" or _only_declares(tree):
            continue
        if not (ROOT / path.parent / "tests" / f"test_{path.name}").exists():
            owed.add(name)
    return owed - set(COVERED_ELSEWHERE)


def test_tests_elsewhere_exist_and_are_needed() -> None:
    for name, test in COVERED_ELSEWHERE.items():
        assert not _only_declares(_modules()[name]), name
        assert (ROOT / test).exists(), test
        path = Path(name)
        assert not (ROOT / path.parent / "tests" / f"test_{path.name}").exists(), name


def _imports(node: ast.AST) -> Iterator[str]:
    """Names of imported top-level packages, but for what only the type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module.partition(".")[0]
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from (name for other in child.orelse for name in _imports(other))
        else:
            yield from _imports(child)


def test_our_packages_are_imported_by_their_installed_names() -> None:
    """In a checkout `import core` would work, in a wheel there is only `magnetar.core`."""
    top = set(PACKAGES) - {"magnetar"}
    bare = {name for name, tree in _modules().items() if top & set(_imports(tree))}
    assert not bare


def _is_pure(name: str, tree: ast.Module) -> bool:
    if _is_test(name) or any(fnmatch(name, pattern) for pattern in NOT_PURE):
        return False
    claims = bool(SAYS_PURE.search(ast.get_docstring(tree) or ""))
    return claims or any(fnmatch(name, pattern) for pattern in PURE)


def test_pure_modules_import_nothing_impure() -> None:
    broken = set()
    for name, tree in _modules().items():
        if _is_pure(name, tree):
            broken |= {f"{name}: {impure}" for impure in IMPURE & set(_imports(tree))}
    assert not broken


def test_storage_calls_the_system_through_its_ports_only() -> None:
    """A simulator runs all else on another disk, clock and scheduler."""
    broken = set()
    for name, tree in _modules().items():
        if not name.startswith("bookie/") or _is_test(name):
            continue
        if any(fnmatch(name, pattern) for pattern in MACHINE):
            continue
        broken |= {f"{name}: {module}" for module in SYSTEM & set(_imports(tree))}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        broken |= {f"{name}: {call}" for call in SYSTEM_CALLS & attributes}
    assert not broken


@pytest.mark.parametrize("pattern", PURE)
def test_patterns_of_pure_modules_are_not_stale(pattern: str) -> None:
    assert any(fnmatch(name, pattern) for name in _modules())


def _without_readme() -> set[str]:
    folders = [*PACKAGES, *OTHERS]
    folders += [f"wire/{path.parent.name}" for path in (ROOT / "wire").glob("*/__init__.py")]
    return {name for name in folders if not (ROOT / name / "README.md").exists()}


def test_paths_in_prose_exist() -> None:
    """A guided tour that leads nowhere is worse than none."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    stale = set()
    for page in pages:
        quoted = re.findall(r"`([\w.]+/[\w./-]*)`", page.read_text(encoding="utf-8"))
        linked = re.findall(r"\]\(([\w./-]+)\)", page.read_text(encoding="utf-8"))
        here = [path for path in quoted if path.split("/")[0] in (*PACKAGES, *OTHERS, "scripts")]
        stale |= {f"{page.name}: {path}" for path in here if not (ROOT / path).exists()}
        stale |= {f"{page.name}: {path}" for path in linked if not (page.parent / path).exists()}
    assert not stale


@cache
def _rooms() -> dict[Path, str]:
    """The README of each folder that has one."""
    found = [path for name in (*PACKAGES, *OTHERS) for path in (ROOT / name).rglob("README.md")]
    own = [path for path in found if BUILT not in path.parts]
    return {path.parent: path.read_text(encoding="utf-8") for path in own}


def _named(text: str) -> set[str]:
    """Files and folders in backquotes; `a/{b,c}.py` are two."""
    names = set()
    for quoted in re.findall(r"`([\w./{},-]+(?:\.pyx?|\.proto|/))`", text):
        head, brace, rest = quoted.partition("{")
        each, _, tail = rest.partition("}")
        names |= {head + name + tail for name in each.split(",")} if brace else {quoted}
    return names


def test_files_that_a_readme_names_exist() -> None:
    dead = set()
    for folder, text in _rooms().items():
        paths = [f"/{path.relative_to(ROOT)}" for path in folder.rglob("*")]
        for name in _named(text):
            ends = f"/{name.rstrip('/')}"
            if not (ROOT / name).exists() and not any(path.endswith(ends) for path in paths):
                dead.add(f"{folder.relative_to(ROOT)}/README.md: {name}")
    assert not dead


def _prose(tree: ast.Module) -> str:
    """The docstrings of a module, of its classes, functions and constants."""
    return "\n".join(
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _files_named_in(text: str) -> set[str]:
    """Our source files that a text names in backticks: none begins with an underscore."""
    return set(re.findall(r"`([a-z][\w/]*\.(?:pyx?|pxd|proto|md))`", text))


def _texts() -> Iterator[tuple[str, str]]:
    """The docstrings of each module, and the source of each compiled one."""
    for name, tree in _modules().items():
        yield name, _prose(tree)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.px[yd]"):
            yield path.relative_to(ROOT).as_posix(), path.read_text()


def test_files_that_a_docstring_names_exist() -> None:
    """By their path, from the folder of the module upwards, or by their name in its package."""
    paths = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for package in (*PACKAGES, *OTHERS, "docs")
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".pyx", ".pxd", ".proto", ".md"}
    ]
    paths += [f"/{path.name}" for path in ROOT.glob("*.*")]
    dead = {
        f"{name}: {file}"
        for name, text in _texts()
        for file in _files_named_in(text)
        if not any(path.endswith(f"/{file}") for path in paths)
    }
    assert not dead


def _is_importable(dotted: str) -> bool:
    """Whether a dotted name is a package or module of ours, or a name in one."""
    path = ROOT.joinpath(*dotted.removeprefix("magnetar.").split("."))
    module = path.parent.with_suffix(".py")
    return (
        path.is_dir()
        or path.with_suffix(".py").exists()
        or (module.exists() and bool(re.search(rf"\b{path.name}\b", module.read_text())))
    )


def test_modules_that_a_docstring_names_exist() -> None:
    named = re.compile(r"`((?:magnetar\.)?(?:core|bookie|wire)(?:\.\w+)+)`")
    dead = {
        f"{name}: {dotted}"
        for name, text in _texts()
        for dotted in named.findall(text)
        if not dotted.endswith((".md", ".py")) and not _is_importable(dotted)
    }
    assert not dead
    assert _is_importable("magnetar.core.kernel.errors.NotOwned")
    assert not _is_importable("core.errors")


def test_files_named_in_a_text_are_found() -> None:
    text = "`ledger/trim.py`, `compiled.pyx`; not `wire/<front>/errors.py`, `_state.py`, trim.py."
    assert _files_named_in(text) == {"ledger/trim.py", "compiled.pyx"}


def test_the_architecture_draws_all_folders() -> None:
    """One drawing, with a part for each package; inside it, each folder by its name."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    (drawing,) = re.findall(r"^Inside them .*?^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    drawn: dict[str, set[str]] = {}
    for line in drawing.splitlines():
        if found := re.match(r"[a-z][\w/]*/", line):
            names = drawn[found[0]] = set()
            line = line[found.end() :]
        names |= set(re.findall(r"(\w+)/", line))
    there: dict[str, set[str]] = {package: set() for package in drawn}
    for package in drawn:
        for path in (ROOT / package).rglob("__init__.py"):
            folder = path.parent
            parts = folder.relative_to(ROOT / package).parts
            if parts and "tests" not in parts:
                there[package].add(folder.name)
    assert drawn == there


@pytest.mark.parametrize("package", PACKAGES)
def test_a_readme_names_all_that_is_beside_it(package: str) -> None:
    unnamed = set()
    for folder, text in _rooms().items():
        if folder.relative_to(ROOT).parts[0] != package:
            continue
        quoted = {
            name for span in re.findall(r"`([^`]+)`", text) for name in re.split(r"\W+", span)
        }
        beside = {path.stem for path in folder.glob("*.py") if not path.stem.endswith("_pb2")}
        beside |= {
            path.parent.name
            for path in folder.glob("*/__init__.py")
            if not path.parent.is_symlink()
        }
        beside -= {"__init__", "__main__", "conftest", "tests"}
        unnamed |= {f"{folder.relative_to(ROOT)}: {name}" for name in beside - quoted}
    assert not unnamed


def _unread_settings() -> set[str]:
    """A setting that nobody reads is a promise that is not kept. Only `magnetar` can read them,
    and policies, for their defaults."""
    read = {name for policy in levels_of(Effective).policies for name in policy.settings}
    for name, tree in _modules().items():
        ours = name.startswith("magnetar/") and not name.startswith("magnetar/settings/")
        if ours and not _is_test(name):
            read |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {path for path, setting in SETTINGS.items() if setting.key not in read}


OWED = {
    "no_mirrored_test": _without_mirrored_test,
    "no_readme": _without_readme,
    "unread_settings": _unread_settings,
}


@pytest.mark.parametrize("kind", OWED)
def test_what_is_owed_is_listed_and_what_is_paid_is_struck(kind: str) -> None:
    listed = set(tomllib.loads(DEBTS.read_text(encoding="utf-8"))[kind])
    owed = OWED[kind]()
    assert not owed - listed, f"{kind}, and not in debts.toml"
    assert not listed - owed, f"paid: strike from {kind} in debts.toml"


def test_packages_import_only_what_they_may() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter is not installed (pip install -e '.[dev]')")
    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def write_debts() -> None:
    lines = ["# What the house rules still ask for; see test_tidy.py. It may only shrink."]
    for kind, owed in OWED.items():
        lines += ["", f"{kind} = [", *(f'    "{name}",' for name in sorted(owed())), "]"]
    DEBTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_debts()
