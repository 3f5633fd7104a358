"""What is written loads again, and says what it is and where it comes from."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from magnetar.settings import load, write_toml
from magnetar.settings.toml import toml_value, write_tables


def test_the_effective_settings_load_again() -> None:
    loaded = load(
        '[log.levels]\n"wire.pulsar" = "debug"',
        environment={"MAGNETAR_BROKER_SUBSCRIPTION_TYPES_ENABLED": "Shared"},
        flags={"--no-sync": "false", "--data-dir": 'a "quoted"\\ path'},
    )
    assert load(write_toml(loaded)).settings == loaded.settings


def test_each_setting_stands_under_its_description_with_its_origin() -> None:
    written = write_toml(load("[listen]\nhttp_port = 1", flags={"--host": "::1"}))
    assert (
        '# Address of every listener; 0.0.0.0 or :: for all interfaces.\nhost = "::1"  # --host\n'
        in written
    )
    assert "http_port = 1  # magnetar.toml\n" in written
    assert "pulsar_port = 6650  # default\n" in written


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives(text: str) -> None:
    assert tomllib.loads(f"key = {toml_value(text)}") == {"key": text}


def test_tables_of_plain_values() -> None:
    tables = {"a": {"b": 1, "c": [True, "x"], "d": 0.5}, "e": {"f": {"g.h": "i"}}}
    assert tomllib.loads(write_tables(tables)) == tables


def test_a_key_that_stands_in_a_setting_is_not_shown() -> None:
    written = write_toml(load("[security]\ntoken_secret_key = 'data:,0123456789'"))
    assert 'token_secret_key = "data:..."' in written
    assert "0123456789" not in written
    written = write_toml(load("[security]\ntoken_jwks = 'https://user:hunter2@keys/a@b'"))
    assert 'token_jwks = "https://...@keys/a@b"' in written
