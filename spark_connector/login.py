"""Who a query is, to the server: the options that Pulsar's clients have for it.

    authPluginClassName                               authParams
    ...impl.auth.AuthenticationToken, or `token`      a token, `token:...`, or `file://PATH`
    ...impl.auth.AuthenticationBasic, or `basic`      NAME:PASSWORD, or JSON: userId, password

A file is read for each connection, on the driver and on all workers, so that a token may be
replaced while a query runs.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.option_values import OptionValues

NAMES: Final = ("authPluginClassName", "authParams")
TOKEN: Final = "token"
BASIC: Final = "basic"
_PLUGINS: Final = {
    "org.apache.pulsar.client.impl.auth.AuthenticationToken": TOKEN,
    "org.apache.pulsar.client.impl.auth.AuthenticationBasic": BASIC,
    TOKEN: TOKEN,
    BASIC: BASIC,
}


class _Basic(Struct, frozen=True):
    user_id: str = msgspec.field(name="userId")
    password: str


class Login(Struct, frozen=True):
    """See the module's docstring."""

    method: str = ""
    """Empty for a query that proves nothing."""
    params: str = ""

    def __repr__(self) -> str:
        return f"Login({self.method!r}, ...)"

    def credentials(self) -> tuple[str, str]:
        """A name, empty for a token, and what proves it; `OptionError` for a file without one."""
        if self.method == BASIC:
            name, _, password = self.params.partition(":")
            return name, password
        if not self.params.startswith("file:"):
            return "", self.params
        path = self.params.removeprefix("file:").removeprefix("//")
        try:
            return "", Path(path).read_text(encoding="ascii").strip().removeprefix("token:")
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f'"authParams": {path}: {error}') from error

    def header(self) -> dict[str, str]:
        """That of HTTP's requests."""
        if not self.method:
            return {}
        name, secret = self.credentials()
        if self.method == TOKEN:
            return {"Authorization": f"Bearer {secret}"}
        said = base64.b64encode(f"{name}:{secret}".encode()).decode()
        return {"Authorization": f"Basic {said}"}


NOBODY: Final = Login()


def parse(values: OptionValues) -> Login:
    """What is said of it; `OptionError` says what is wrong with it, and nothing secret."""
    plugin, params = values.text("authpluginclassname"), values.text("authparams")
    if not plugin and not params:
        return NOBODY
    if not plugin or not params:
        raise OptionError('"authPluginClassName" and "authParams" are given together')
    method = _PLUGINS.get(plugin)
    if method is None:
        raise OptionError(f'"authPluginClassName": {plugin} is none of {", ".join(_PLUGINS)}')
    if method == TOKEN:
        params = params.removeprefix("token:")
    elif params.startswith("{"):
        try:
            found = msgspec.json.decode(params, type=_Basic)
        except msgspec.MsgspecError:
            raise OptionError('"authParams" lacks userId or password') from None
        params = f"{found.user_id}:{found.password}"
    elif ":" not in params:
        raise OptionError('"authParams" is NAME:PASSWORD')
    return Login(method, params)
