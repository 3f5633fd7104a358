"""What people see who open the server in a browser."""

import msgspec

from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting


async def test_people_see_a_page(visitor: Visitor) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = await visitor.ask("GET", "/", headers=browser)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>Magnetar 1</h1>" in answer.text
    for results in ("pulsar://127.0.0.1:6650", "http://127.0.0.1:8080", 'href="/healthz"'):
        assert results in answer.text
    assert "script" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_programs_get_json(visitor: Visitor) -> None:
    results = await visitor.get("/")
    assert results["listeners"] == {
        "pulsar": "pulsar://127.0.0.1:6650",
        "http": "http://127.0.0.1:8080",
    }
    assert (results["version"], results["trouble"]) == ("Magnetar 1", None)
    for path in results["links"]:
        assert (await visitor.ask("GET", path)).status_code == 200


async def test_nothing_that_is_told_is_taken_for_html() -> None:
    options = msgspec.structs.replace(
        OPTIONS, broker_url="pulsar://<b>:6650", readiness=lambda: "disk <full>"
    )
    async with visiting(options) as visitor:
        page = (await visitor.ask("GET", "/", headers={"accept": "text/html"})).text
    assert "<b>" not in page
    assert "disk &lt;full&gt;" in page
