import re

from magnetar.wire.http.bookie.tests.bookies import visiting


async def test_a_browser_gets_a_page_whose_links_work() -> None:
    for alone in (True, False):
        async with visiting(alone=alone) as visitor:
            response = await visitor.client.get("/", headers={"accept": "text/html"})
            assert response.headers["content-type"].startswith("text/html")
            assert "&lt;b1&gt;" in response.text
            assert "<b1>" not in response.text
            assert ("list_bookies" in response.text) is not alone
            for link in re.findall('href="([^"]+)"', response.text):
                assert (await visitor.client.get(link)).status_code == 200, link


async def test_programs_get_json() -> None:
    async with visiting() as visitor:
        found = await visitor.get("/")
        assert found["bookieId"] == "<b1>"
        assert found["cluster"] == "registered"
        assert "/metrics" in found["links"]
