"""The HTTP side of a bookie that runs alone; `interop_tests/bookkeeper` has one of a cluster."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from magnetar.bookie.requests.tests.peers import KEY, add
from magnetar.bookie.rpc.messages import LAST_ENTRY, Added, Read, Status
from magnetar.tests.test_bookie_server import running


def ask(where: str, path: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{where}{path}", data, method=method)
    with urllib.request.urlopen(request, timeout=20) as response:
        found = response.read().decode()
    return json.loads(found) if response.headers["content-type"] == "application/json" else found


def figures(where: str) -> dict[str, float]:
    families = text_string_to_metric_families(ask(where, "/metrics"))
    samples = [sample for family in families for sample in family.samples]
    # the parser gives each counter the ending that newer formats demand
    return {sample.name.removesuffix("_total"): sample.value for sample in samples}


def test_a_bookie_tells_of_itself_and_is_made_read_only(tmp_path: Path) -> None:
    with running(tmp_path, "--http-port", "0") as bookie:
        where = json.loads((tmp_path / "ready").read_text())["http"]
        assert ask(where, "/heartbeat") == "OK\n"
        assert bookie.ask(add(1, 0)) == Added(Status.OK, 1, 0)
        assert ask(where, "/api/v1/bookie/sanity") == {"passed": True, "readOnly": False}
        info = ask(where, "/api/v1/bookie/info")
        assert 0 < info["freeSpace"] <= info["totalSpace"]
        files = ask(where, "/api/v1/bookie/list_disk_file")
        journals = (tmp_path / "data/bookie/journal/current").glob("*.txn")
        assert set(files["journal files"].split("\t")) == {"", *(one.name for one in journals)}
        assert "LastLogMark" in json.dumps(ask(where, "/api/v1/bookie/last_log_mark"))
        assert ask(where, "/")["bookieId"] == "b1"
        settings = ask(where, "/api/v1/config/server_config")
        assert (settings["bookie_id"], settings["journal_dir"]) == ("b1", "journal")
        assert (
            settings["port"]
            == json.loads((tmp_path / "ready").read_text())["bookie"].rpartition(":")[2]
        )
        assert settings["metadata_uri"] == ""
        assert "listen.host" in settings
        assert not any(name.startswith("listen.") and "_port" in name for name in settings)
        bookie.ask(Read(1, LAST_ENTRY, KEY, fence=True))
        bookie.ask(Read(2, 0))
        text = ask(where, "/metrics")
        for name, good, failed in (
            ("ADD_ENTRY", 1, 0),
            ("READ_ENTRY_FENCE", 1, 0),
            ("READ_ENTRY", 0, 1),
            ("WRITE_LAC", 0, 0),
        ):
            counted = f"bookkeeper_server_{name}_REQUEST_count"
            assert f'{counted}{{success="true"}} {good}\n' in text
            assert f'{counted}{{success="false"}} {failed}\n' in text
        found = figures(where)
        assert found["bookie_SERVER_STATUS"] == 1
        assert found["bookkeeper_server_ADD_ENTRY_count"] == 1
        assert found["bookie_ledger_writable_dirs"] == 1
        ask(where, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": True})
        assert bookie.ask(add(3, 0)) == Added(Status.READ_ONLY, 3, 0)
        assert figures(where)["bookie_SERVER_STATUS"] == 0
        state = ask(where, "/api/v1/bookie/state")
        assert (state["readOnly"], state["availableForHighPriorityWrites"]) == (True, True)
        urgent = add(3, 0, recovery=True, high_priority=True)
        assert bookie.ask(urgent) == Added(Status.OK, 3, 0)
        ask(where, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": False})
        assert bookie.ask(add(3, 1)) == Added(Status.OK, 3, 1)
