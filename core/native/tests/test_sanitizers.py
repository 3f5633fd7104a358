"""The compiled modules, built with AddressSanitizer and UBSan, run the tests of their twins.

They read and write memory by hand. What a test cannot see (a byte read behind a buffer, an object
used after it was freed) stops the process here. Python's own allocator is left out, since what it
hands out lies in arenas of its own, of which the sanitizer knows nothing.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from magnetar.core.native import PURE_WANTED

ROOT = Path(__file__).resolve().parents[3]
TWIN_TESTS = (
    "core/link/tests/test_sockets.py",
    "core/link/tests/test_large_frame.py",
    "core/compaction/tests/test_key_index.py",
    "core/entry/tests/test_header.py",
    "core/entry/kafka/tests/test_form.py",
    "core/entry/pulsar/tests/test_batches.py",
    "core/entry/tests/test_stamps.py",
    "bookie/format/tests/test_records.py",
    "bookie/format/tests/test_entries.py",
    "bookie/format/tests/test_locations.py",
    "bookie/machine/tests/test_kernel_writes.py",
    "bookie/rpc/tests/test_rows.py",
    "wire/kafka/partition/tests/test_batches.py",
    "wire/kafka/partition/tests/test_contents.py",
    "wire/kafka/tests/test_hot.py",
    "wire/mqtt/codec/tests/test_acknowledgements.py",
    "wire/mqtt/codec/tests/test_publishes.py",
    "wire/pulsar/hot/tests",
)
SANITIZE = "-fsanitize=address,undefined"
FLAGS = f"{SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g"
LEFT_OUT = shutil.ignore_patterns(
    *(".*", "*.so", "build", "dist", "out", "target", "node_modules", "__pycache__", "*.egg-info")
)


def compiler() -> str:
    return os.environ.get("CC", "") or (sysconfig.get_config_var("CC") or "cc").split()[0]


def runtime() -> str:
    """The library that must be loaded before Python; nothing if the compiler has none."""
    if shutil.which(compiler()) is None:
        return ""
    command = [compiler(), "-print-file-name=libasan.so"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return found if os.path.isabs(found) and os.path.exists(found) else ""


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with its modules built to be watched."""
    if sys.platform != "linux" or not runtime():
        pytest.skip("no compiler with AddressSanitizer")
    pytest.importorskip("Cython")
    folder = tmp_path_factory.mktemp("sanitized") / "copy"
    shutil.copytree(ROOT, folder, symlinks=True, ignore=LEFT_OUT)
    done = run(folder, "setup.py", "-q", "build_ext", "--inplace", CFLAGS=FLAGS, LDFLAGS=SANITIZE)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def watched(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return run(
        folder,
        *command,
        LD_PRELOAD=runtime(),
        ASAN_OPTIONS="detect_leaks=0",  # Python frees little when it ends
        UBSAN_OPTIONS="print_stacktrace=1",
        PYTHONMALLOC="malloc",
        MAGNETAR_PURE="0",
    )


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.skipif(PURE_WANTED, reason="without compiled modules")
def test_no_compiled_module_touches_memory_that_is_not_its_own(built: Path) -> None:
    where = "import magnetar.core.link.compiled as it; print(it.__file__)"
    home = watched(built, "-c", where)
    assert home.stdout.startswith(str(built)), home.stdout + home.stderr
    options = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:magnetar", "--timeout", "600")
    done = watched(built, "-m", "pytest", *options, *TWIN_TESTS)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    assert "AddressSanitizer" not in done.stderr
    assert "runtime error" not in done.stderr


OVERRUN = """
# cython: language_level=3
def read(bytes data, Py_ssize_t at):
    return (<const unsigned char *>data)[at]
"""


@pytest.mark.heavy
@pytest.mark.timeout(1800)  # alone, it has the modules built
@pytest.mark.skipif(PURE_WANTED, reason="without compiled modules")
def test_a_byte_read_behind_a_buffer_is_noticed(built: Path, tmp_path: Path) -> None:
    """Or the test above could not fail."""
    (tmp_path / "overrun.pyx").write_text(OVERRUN)
    (tmp_path / "setup.py").write_text(
        "from setuptools import Extension, setup\n"
        "setup(ext_modules=[Extension('overrun', ['overrun.pyx'])])\n"
    )
    done = run(tmp_path, "setup.py", "-q", "build_ext", "--inplace", CFLAGS=FLAGS, LDFLAGS=SANITIZE)
    assert done.returncode == 0, done.stdout + done.stderr
    done = watched(tmp_path, "-c", "import overrun; overrun.read(bytes(100), 2000)")
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
