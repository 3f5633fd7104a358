"""The wheel, installed in a fresh environment beside packages with the names of our folders.

One of the sources is built in seconds; the compiled one, which takes minutes, is for the heavy run.
"""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from magnetar.core.testing.hot_modules import hot_modules

ROOT = Path(__file__).parents[1]
ROOMS = ("bookie", "core", "spark_connector", "wire")
DISCOVERY = Path("spark_connector/discovery")
"""What is installed at the top, where Spark looks for it."""
FRONT = "magnetar"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # a wheel takes a minute and more

APPLICATION = """
import urllib.request


def test_it_serves(magnetar):
    with urllib.request.urlopen(f"{magnetar.http_url}/admin/v2/brokers/health") as answer:
        assert answer.status == 200
"""


SOURCES, COMPILED = "MAGNETAR_BUILD_PURE", "MAGNETAR_BUILD_QUICK"


@pytest.fixture(scope="module", params=[SOURCES, pytest.param(COMPILED, marks=pytest.mark.heavy)])
def build(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def wheel(build: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "scripts/wheel", folder], env={**os.environ, build: "1"}, check=True)
    (made,) = folder.glob("*.whl")
    return made


def _in_git() -> set[str]:
    """Modules that are to be installed, by their place in the wheel."""
    listed = subprocess.run(
        ["git", "ls-files", FRONT, *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [Path(line) for line in listed.stdout.splitlines()]
    shipped = [path for path in paths if path.suffix in (".py", ".pyi") or path.name == "py.typed"]
    return {
        str(_installed(path))
        for path in shipped
        if "tests" not in path.parts and path.name != "conftest.py"
    }


def _installed(path: Path) -> Path:
    if path.is_relative_to(DISCOVERY):
        return path.relative_to(DISCOVERY)
    return path if path.parts[0] == FRONT else FRONT / path


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if not name.endswith("/")]


def test_it_holds_what_git_has_and_no_tests(wheel: Path) -> None:
    ours = {name for name in _names(wheel) if ".dist-info/" not in name}
    assert {name for name in ours if not name.endswith(".so")} == _in_git()


def test_nothing_of_ours_stands_beside_magnetar(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in _names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {FRONT, "pyspark_magnetar"}


def test_what_an_earlier_build_has_left_does_not_ship(tmp_path: Path) -> None:
    """`pip install` builds in the checkout, which may have had other modules the last time."""
    left = tmp_path / "lib" / FRONT / "core" / "gone.py"
    left.parent.mkdir(parents=True)
    left.write_text("")
    folders = ["--build-lib", tmp_path / "lib", "--build-temp", tmp_path / "temp"]
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build", *folders],
        cwd=ROOT,
        env={**os.environ, "MAGNETAR_BUILD_PURE": "1"},
        check=True,
    )
    assert (tmp_path / "lib" / FRONT / "core" / "kernel" / "errors.py").exists()
    assert not list(tmp_path.rglob("*.so"))
    assert not left.exists()


def test_what_is_compiled_ships_in_a_wheel_for_most_linuxes(wheel: Path, build: str) -> None:
    compiled = {name for name in _names(wheel) if name.endswith(".so")}
    if build == SOURCES:
        assert not compiled
        assert wheel.name.endswith("-py3-none-any.whl")
        return
    twins = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.pyx")]
    names = [str(path.with_suffix("")) for path in twins]
    names += [name.replace(".", "/") for name in hot_modules(ROOT)] + ["hot__mypyc"]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert compiled == {f"{FRONT}/{name}{suffix}" for name in names}
    assert "-manylinux" in wheel.name


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and with somebody else's packages that must not be touched."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    for room in ROOMS:
        (packages / room).mkdir()
        (packages / room / "__init__.py").write_text("raise ImportError('not this one')\n")
        (packages / room / "errors.py").write_text("")
    _run(folder, "pip", "install", "--quiet", wheel, "pytest")
    return folder


def _run(site: Path, program: str, *arguments: object, cwd: Path | None = None) -> str:
    command = [site / "bin" / program, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_works_beside_packages_of_other_people(site: Path, build: str, tmp_path: Path) -> None:
    said = _run(site, "magnetar", "version", cwd=tmp_path)
    assert ("codec: compiled" in said) == (build == COMPILED)
    assert ("hot path: compiled" in said) == (build == COMPILED)
    for room in ROOMS:  # where somebody works who has such folders too
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise ImportError('nor this one')\n")
    (tmp_path / "test_application.py").write_text(APPLICATION)
    said = _run(site, "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "1 passed" in said


def test_uninstalled_it_leaves_nothing_and_takes_nothing_else(site: Path) -> None:
    _run(site, "pip", "uninstall", "--quiet", "--yes", FRONT)
    (packages,) = (site / "lib").glob("python*/site-packages")
    assert not list(packages.glob(f"{FRONT}*"))
    for room in ROOMS:
        assert (packages / room / "__init__.py").exists()
        assert (packages / room / "errors.py").exists()
