"""Sources and their order, and the sentence for each way to get a setting wrong."""

import pytest

from magnetar.operator_error import OperatorError
from magnetar.settings import SETTINGS, Settings, load


def test_without_any_source_all_is_default() -> None:
    loaded = load()
    assert loaded.settings == Settings()
    assert loaded.origins == {}
    assert loaded.settings.listen.host == "127.0.0.1"
    assert loaded.settings.listen.pulsar_port == 6650
    assert loaded.settings.listen.http_port == 8080
    assert loaded.settings.storage.sync


def test_later_sources_win() -> None:
    file = "[listen]\npulsar_port = 1\nhttp_port = 1\nhost = 'file'"
    loaded = load(
        file,
        "here.toml",
        {"MAGNETAR_LISTEN_PULSAR_PORT": "2", "MAGNETAR_LISTEN_HTTP_PORT": "2"},
        {"--pulsar-port": "3"},
    )
    listen = loaded.settings.listen
    assert (listen.pulsar_port, listen.http_port, listen.host) == (3, 2, "file")
    assert loaded.origins == {
        "listen.pulsar_port": "--pulsar-port",
        "listen.http_port": "MAGNETAR_LISTEN_HTTP_PORT",
        "listen.host": "here.toml",
    }


@pytest.mark.parametrize(
    ("name", "expected"), [("magnetar.toml", "data"), ("/srv/mq/magnetar.toml", "/srv/mq/data")]
)
def test_a_path_may_be_in_the_folder_of_the_file(name: str, expected: str) -> None:
    assert load("[storage]\ndata_dir = '{folder}/data'", name).settings.storage.data_dir == expected
    for other in ("data", "/data", "x/{folder}/data", "{folder}data"):
        found = load(f"[storage]\ndata_dir = '{other}'", name).settings
        assert found.storage.data_dir == other
    environment = {"MAGNETAR_STORAGE_DATA_DIR": "{folder}/data"}
    assert load("", name, environment).settings.storage.data_dir == "{folder}/data", "no file"


@pytest.mark.parametrize("path", list(SETTINGS))
def test_every_setting_has_a_variable(path: str) -> None:
    setting = SETTINGS[path]
    spelled = {
        tuple: ",".join(setting.default) if isinstance(setting.default, tuple) else "",
        dict: "",
        bool: str(setting.default).lower(),
    }.get(type(setting.default), str(setting.default))
    loaded = load(environment={setting.variable: spelled})
    assert getattr(getattr(loaded.settings, setting.section), setting.key) == setting.default
    assert loaded.origins == {path: setting.variable}


def test_lists_and_tables_in_the_environment() -> None:
    loaded = load(
        environment={
            "MAGNETAR_BROKER_SUBSCRIPTION_TYPES_ENABLED": "Shared, Exclusive",
            "MAGNETAR_LOG_LEVELS": "wire.pulsar=debug, core = error",
            "MAGNETAR_STORAGE_SYNC": "false",
        }
    )
    assert loaded.settings.broker.subscription_types_enabled == ("Shared", "Exclusive")
    assert loaded.settings.log.levels == {"wire.pulsar": "debug", "core": "error"}
    assert loaded.settings.storage.sync is False


def test_part_names_need_no_quotes() -> None:
    loaded = load('[log.levels]\nwire.pulsar = "debug"')
    assert loaded.settings.log.levels == {"wire.pulsar": "debug"}


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[lisen]\nhost = 'x'", "m.toml: there is no setting lisen; did you mean listen?"),
        (
            "[listen]\npulsar-port = 1",
            "m.toml: there is no setting listen.pulsar-port; did you mean listen.pulsar_port?",
        ),
        (
            "pulsar_port = 1",
            "m.toml: there is no setting pulsar_port; did you mean listen.pulsar_port?",
        ),
        (
            "[broker]\nhttp_port = 1",
            "m.toml: there is no setting broker.http_port; did you mean listen.http_port?",
        ),
        ("[listen]\nqqqqqqqqqqqq = 1", "m.toml: there is no setting listen.qqqqqqqqqqqq"),
        ("listen = 1", "m.toml: listen: expected a table, got 1"),
        (
            "[listen]\npulsar_port = 'x'",
            "m.toml: listen.pulsar_port: expected a whole number from -1 to 65535, got 'x'",
        ),
        (
            "[listen]\npulsar_port = 65536",
            "m.toml: listen.pulsar_port: expected a whole number from -1 to 65535, got 65536",
        ),
        (
            "[storage]\nsync = 1",
            "m.toml: storage.sync: expected true or false, got 1",
        ),
        (
            "[log]\nlevel = 'loud'",
            "m.toml: log.level: expected one of debug, info, warning, error, got 'loud'",
        ),
        (
            "[limits]\nkeep_alive_seconds = 0",
            "m.toml: limits.keep_alive_seconds: expected a number above 0, got 0",
        ),
        (
            "[limits]\ndrain_seconds = 4000",
            "m.toml: limits.drain_seconds: expected a number above 0, at most 3600, got 4000",
        ),
        (
            "[limits]\nkeep_alive_seconds = inf",
            "m.toml: limits.keep_alive_seconds: expected a number above 0, below 1,000,000,000, "
            "got inf",
        ),
        (
            "[ledgers]\nmax_rollover_minutes = 1e300",
            "m.toml: ledgers.max_rollover_minutes: expected a number above 0, below 1,000,000,000, "
            "got 1e+300",
        ),
        ("[storage]\ndata_dir = ''", "m.toml: storage.data_dir: expected text, not empty, got ''"),
        (
            '[tls]\ncertificate = "a\\u0000b"',
            "m.toml: tls.certificate: expected text without NUL, got 'a\\x00b'",
        ),
        (
            "[broker]\nmax_producers_per_topic = -1",
            "m.toml: broker.max_producers_per_topic: expected a whole number of at least 0, got -1",
        ),
        (
            "[broker]\nsubscription_types_enabled = ['Shard']",
            "m.toml: broker.subscription_types_enabled: expected a list of one of Exclusive, "
            "Shared, Failover, Key_Shared, not empty, got ['Shard']",
        ),
        (
            "[log]\nlevels = 'debug'",
            "m.toml: log.levels: expected a table of one of debug, info, warning, error, "
            "got 'debug'",
        ),
    ],
)
def test_a_bad_file_is_one_sentence(toml: str, sentence: str) -> None:
    with pytest.raises(OperatorError) as caught:
        load(toml, "m.toml")
    assert str(caught.value) == sentence


def test_a_file_that_is_no_toml() -> None:
    with pytest.raises(OperatorError, match=r"^m\.toml: not valid TOML: .* line 2"):
        load("[listen]\nhost = \n", "m.toml")


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"MAGNETAR_LISTEN_PULSARPORT": "1"},
            "environment: there is no setting MAGNETAR_LISTEN_PULSARPORT; "
            "did you mean MAGNETAR_LISTEN_PULSAR_PORT?",
        ),
        (
            {"MAGNETAR_LISTEN_PULSAR_PORT": "many"},
            "MAGNETAR_LISTEN_PULSAR_PORT: listen.pulsar_port: "
            "expected a whole number from -1 to 65535, got 'many'",
        ),
        (
            {"MAGNETAR_STORAGE_SYNC": "perhaps"},
            "MAGNETAR_STORAGE_SYNC: storage.sync: expected true or false, got 'perhaps'",
        ),
    ],
)
def test_a_bad_environment_is_one_sentence(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(OperatorError) as caught:
        load(environment=environment)
    assert str(caught.value) == sentence


def test_variables_that_are_not_meant_for_us() -> None:
    environment = {
        "HOME": "/",
        "MAGNETAR_CONFIG": "m.toml",
        "MAGNETAR_METADATA_URI": "zk:127.0.0.1",
        "MAGNETAR_APT": "1",
        "MAGNETAR_EXPLORE": "1",
        "MAGNETAR_SERVICE_HOST": "10.0.0.1",  # Kubernetes, for a service of this name
        "MAGNETAR_PORT_6650_TCP_ADDR": "10.0.0.1",
    }
    assert load(environment=environment).origins == {}


def test_a_flag_that_is_none() -> None:
    with pytest.raises(OperatorError, match="no setting --pulsar-prt; did you mean --pulsar-port"):
        load(flags={"--pulsar-prt": "1"})
