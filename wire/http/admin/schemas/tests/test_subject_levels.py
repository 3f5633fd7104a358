"""Levels of subjects, as tools set them."""

from __future__ import annotations

from magnetar.wire.http.admin.schemas.tests.test_subjects import (
    MORE,
    ONE,
    RENAMED,
    fails,
    registers,
    says,
)
from magnetar.wire.http.tests.visitor import Visitor


async def test_levels(visitor: Visitor) -> None:
    assert await says(visitor, "GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    await fails(visitor, 40408, "GET", "/config/t-value")
    answer = await says(visitor, "PUT", "/config/t-value", {"compatibility": "FORWARD"})
    assert answer == {"compatibility": "FORWARD"}
    assert await says(visitor, "GET", "/config/t-value") == {"compatibilityLevel": "FORWARD"}
    await registers(visitor, ONE)
    await registers(visitor, MORE)
    assert await says(visitor, "DELETE", "/config/t-value") == {"compatibilityLevel": "FORWARD"}
    await fails(visitor, 40401, "DELETE", "/config/t-value")
    await fails(visitor, 40408, "GET", "/config/t-value")
    await says(visitor, "PUT", "/config", {"compatibility": "NONE"})
    whole = await says(visitor, "GET", "/config/t-value?defaultToGlobal=true")
    assert whole == {"compatibilityLevel": "NONE"}
    await registers(visitor, RENAMED)
    namespace = "/admin/v2/namespaces/public/default/schemaCompatibilityStrategy"
    assert await visitor.get(namespace) == "ALWAYS_COMPATIBLE"
    await fails(visitor, 42203, "PUT", "/config", {"compatibility": "SOME"})
    assert await says(visitor, "DELETE", "/config") == {"compatibilityLevel": "NONE"}
    assert await says(visitor, "GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert await visitor.get(namespace) == "UNDEFINED"


async def test_levels_in_any_case_of_letters(visitor: Visitor) -> None:
    for path in ("/config", "/config/t-value"):
        answer = await says(visitor, "PUT", path, {"compatibility": "full_Transitive"})
        assert answer == {"compatibility": "FULL_TRANSITIVE"}
        assert await says(visitor, "GET", path) == {"compatibilityLevel": "FULL_TRANSITIVE"}


async def test_subjects_of_no_topic_have_levels_of_their_own(visitor: Visitor) -> None:
    await fails(visitor, 40408, "GET", "/config/t-key")
    await says(visitor, "PUT", "/config/t-key", {"compatibility": "NONE"})
    assert await says(visitor, "GET", "/config/t-key") == {"compatibilityLevel": "NONE"}
    assert await says(visitor, "GET", "/subjects") == []
    await registers(visitor, ONE, "/subjects/t-key")
    await registers(visitor, RENAMED, "/subjects/t-key")
    await registers(visitor, ONE, "/subjects/other-key")
    await fails(visitor, 409, "POST", "/subjects/other-key/versions", RENAMED)
    assert await says(visitor, "DELETE", "/config/t-key") == {"compatibilityLevel": "NONE"}
    await fails(visitor, 40408, "GET", "/config/t-key")
    await fails(visitor, 409, "POST", "/subjects/t-key/versions", MORE)
