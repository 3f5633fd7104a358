"""Who a query is: what users say, and what is sent of it."""

import pickle

import pytest

from magnetar.spark_connector import options
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.login import NOBODY

GIVEN = {"service.url": "http://h:1", "topic": "t"}
OF_PULSAR = "org.apache.pulsar.client.impl.auth.Authentication"


def login(**given):
    return options.parse(GIVEN | given).security.login


@pytest.mark.parametrize("plugin", ["token", f"{OF_PULSAR}Token"])
@pytest.mark.parametrize("params", ["abc.def", "token:abc.def"])
def test_a_token(plugin, params):
    found = login(authPluginClassName=plugin, authParams=params)
    assert found.header() == {"Authorization": "Bearer abc.def"}
    assert found.credentials() == ("", "abc.def")


def test_as_streamnative_has_it():
    given = {
        "pulsar.client.authPluginClassName": f"{OF_PULSAR}Token",
        "pulsar.client.authParams": "token:abc",
    }
    assert login(**given).header() == {"Authorization": "Bearer abc"}


@pytest.mark.parametrize("prefix", ["file://", "file:"])
def test_a_file_is_read_each_time(tmp_path, prefix):
    path = tmp_path / "token"
    path.write_text("one\n")
    found = pickle.loads(
        pickle.dumps(login(authPluginClassName="token", authParams=f"{prefix}{path}"))
    )
    assert found.header() == {"Authorization": "Bearer one"}
    path.write_text("two")
    assert found.header() == {"Authorization": "Bearer two"}
    path.unlink()
    with pytest.raises(OptionError, match="No such file"):
        found.header()


@pytest.mark.parametrize("params", ["ali:se:same", '{"userId": "ali", "password": "se:same"}'])
def test_a_name_and_a_password(params):
    found = login(authPluginClassName=f"{OF_PULSAR}Basic", authParams=params)
    assert found.header() == {"Authorization": "Basic YWxpOnNlOnNhbWU="}
    assert found.credentials() == ("ali", "se:same")


def test_nobody():
    assert login() is NOBODY
    assert NOBODY.header() == {}


@pytest.mark.parametrize(
    ("plugin", "params", "why"),
    [
        ("token", "", "are given together"),
        ("", "secret", "are given together"),
        (f"{OF_PULSAR}Tls", "secret", "is none of"),
        ("basic", "secret", "is NAME:PASSWORD"),
        ("basic", '{"userId": "secret"}', "lacks userId or password"),
    ],
)
def test_what_is_wrong(plugin, params, why):
    with pytest.raises(OptionError, match=why) as error:
        login(authPluginClassName=plugin, authParams=params)
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None


def test_nothing_secret_is_printed():
    assert "secret" not in repr(options.parse(
        GIVEN | {"authPluginClassName": "token", "authParams": "secret"}
    ))  # fmt: skip
