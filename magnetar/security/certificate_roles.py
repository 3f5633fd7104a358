"""The roles that Apache's bookies read from a client's certificate. Pure.

They are in its unit: `OU=0:role,another;1:cluster` (`CertUtils.java` of BookKeeper 4.18). The first
is the one that counts. Certificates without such a unit name somebody by their common name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from magnetar.core.security.identity import is_name

ROLES: Final = "0"
"""`OU_ROLE_NAME_CODE`."""
_coded = re.compile(r"([0-9]+):(.*)", re.DOTALL)


def roles_in(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Of a verified certificate, as `getpeercert` describes it; empty if it names nobody."""
    subject = [pair for rdn in certificate.get("subject", ()) for pair in rdn]
    unit = [value for key, value in subject if key == "organizationalUnitName"]
    for part in unit[0].split(";") if unit else ():
        coded = _coded.match(part)
        if coded is not None and coded[1] == ROLES:
            named = tuple(role.strip() for role in coded[2].split(","))
            return named if all(map(is_name, named)) else ()
    common = [value for key, value in subject if key == "commonName"]
    return (common[-1],) if len(common) == 1 and is_name(common[-1]) else ()
