"""The plugin as its users see it: a pytest run of its own, in a folder of its own."""

import subprocess
import sys
from pathlib import Path

USES = """
first = []

def test_session(magnetar):
    assert magnetar.running
    first.append(magnetar.pulsar_url)

def test_session_again(magnetar, magnetar_module):
    assert first == [magnetar.pulsar_url]
    assert magnetar_module.pulsar_url not in first

def test_one_of_its_own(magnetar_function):
    magnetar_function.kill()
    magnetar_function.restart()
    config = (magnetar_function.data_dir.parent / "magnetar.toml").read_text()
    assert "max_message_size = 2000" in config
    assert 'level = "debug"' in config
"""

INI = """
[pytest]
magnetar_settings =
    broker.max_message_size = 1000
    log.level = "debug"
"""


def _pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_fixtures_and_settings(tmp_path: Path) -> None:
    (tmp_path / "test_uses.py").write_text(USES)
    (tmp_path / "pytest.ini").write_text(INI)
    done = _pytest(tmp_path, "--magnetar-setting", "broker.max_message_size = 2000")
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_a_wrong_setting_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_uses.py").write_text(USES)
    (tmp_path / "pytest.ini").touch()
    done = _pytest(tmp_path, "--magnetar-setting", "broker.max_mesage_size = 1")
    assert "did you mean broker.max_message_size?" in done.stdout
    done = _pytest(tmp_path, "--magnetar-setting", "broker")
    assert "magnetar setting 'broker'" in done.stdout


def test_a_failed_test_shows_the_log_of_its_server(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(
        "def test_fails(magnetar_function):\n    assert False\n"
    )
    (tmp_path / "pytest.ini").touch()
    done = _pytest(tmp_path)
    assert " log of magnetar_function " in done.stdout
    assert "magnetar.server: pulsar listens on" in done.stdout


def test_it_does_so_when_the_server_is_gone(tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def late():\n"
        "    yield\n"
        "    assert False\n"
        "def test_fails(late, magnetar_function):\n"
        "    pass\n"
    )
    (tmp_path / "pytest.ini").touch()
    done = _pytest(tmp_path)
    assert "1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "magnetar.server: pulsar listens on" in done.stdout


def test_loading_it_loads_no_server(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    heavy = ('trio', 'msgspec', 'pulsar', 'magnetar.child', 'magnetar.settings')\n"
        "    assert not [name for name in heavy if name in sys.modules]\n"
    )
    (tmp_path / "pytest.ini").touch()
    # other plugins of this environment import trio themselves
    done = _pytest(tmp_path, "-p", "no:trio", "-p", "no:hypothesispytest", "-p", "no:anyio")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
