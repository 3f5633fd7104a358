from magnetar.wire.http.bookie.tests.bookies import visiting

BOOKIE = "/api/v1/bookie"


async def test_heartbeat_and_metrics() -> None:
    async with visiting() as visitor:
        response = await visitor.client.get("/heartbeat")
        assert (response.status_code, response.text) == (200, "OK\n")
        page = (await visitor.client.get("/metrics")).text
        assert "\nbookie_x 3\n" in page
        assert "\nmagnetar_http_connections 0\n" in page
        assert await visitor.get("/api/v1/config/server_config") == {"storage.sync": "True"}


async def test_its_state_and_what_an_operator_makes_of_it() -> None:
    async with visiting() as visitor:
        assert await visitor.get(f"{BOOKIE}/state") == {
            "running": True,
            "readOnly": False,
            "shuttingDown": False,
            "availableForHighPriorityWrites": True,
        }
        path = f"{BOOKIE}/state/readonly"
        assert await visitor.does("PUT", path, {"readOnly": True}) == {"readOnly": True}
        assert await visitor.get(path) == {"readOnly": True}
        assert await visitor.does("PUT", path, {"readOnly": False}) == {"readOnly": False}
        assert await visitor.get(f"{BOOKIE}/info") == {"freeSpace": 5, "totalSpace": 9}


async def test_whether_it_is_ready_and_sane() -> None:
    async with visiting() as visitor:
        assert (await visitor.client.get(f"{BOOKIE}/is_ready")).status_code == 200
        assert await visitor.get(f"{BOOKIE}/sanity") == {"passed": True, "readOnly": False}
        visitor.bookie.sane = False
        assert await visitor.get(f"{BOOKIE}/sanity") == {"passed": False, "readOnly": False}
        visitor.bookie.read_only = True
        assert await visitor.get(f"{BOOKIE}/sanity") == {"passed": True, "readOnly": True}
        visitor.bookie.running = False
        assert "stopping" in await visitor.fails(503, "GET", f"{BOOKIE}/is_ready")


async def test_its_files() -> None:
    async with visiting() as visitor:
        mark = await visitor.get(f"{BOOKIE}/last_log_mark")
        assert mark == {"LastLogMark: Journal Id - 10(a.txn)": "Pos - 512"}
        assert await visitor.get(f"{BOOKIE}/list_disk_file") == {
            "journal files": "1.txn\ta.txn\t",
            "entrylog files": "0.log\t",
            "index files": "",
        }
        found = await visitor.get(f"{BOOKIE}/list_disk_file?file_type=entrylog")
        assert found == {"entrylog files": "0.log\t"}


async def test_garbage_is_collected_on_demand() -> None:
    async with visiting() as visitor:
        said = await visitor.does("PUT", f"{BOOKIE}/gc")
        assert said == "Triggered GC on BookieServer: <b1>"
        await visitor.does("PUT", f"{BOOKIE}/gc", {"forceMinor": True})
        await visitor.does("PUT", f"{BOOKIE}/gc", {"forceMajor": True, "forceMinor": False})
        await visitor.does("PUT", f"{BOOKIE}/gc", {"forceMajor": False})
        assert visitor.bookie.garbage.collected == [
            (True, True),
            (True, True),
            (False, True),
            (True, False),
        ]
        visitor.bookie.garbage.suspended["major"] = True
        await visitor.does("PUT", f"{BOOKIE}/gc")
        await visitor.does("PUT", f"{BOOKIE}/gc", {"forceMajor": True})
        assert visitor.bookie.garbage.collected[4:] == [(True, False), (True, True)]
        visitor.bookie.garbage.suspended["major"] = False
        assert await visitor.get(f"{BOOKIE}/gc") == {"is_in_force_gc": "true"}
        (details,) = await visitor.get(f"{BOOKIE}/gc_details")
        assert details == {
            "forceCompacting": True,
            "majorCompacting": False,
            "minorCompacting": True,
            "lastMajorCompactionTime": 80,
            "lastMinorCompactionTime": 70,
            "lastEntryLocationCompactionTime": 90,
            "entryLocationCompactionCounter": 9,
            "majorCompactionCounter": 8,
            "minorCompactionCounter": 7,
        }
    async with visiting(alone=True) as visitor:
        assert "in no cluster" in await visitor.fails(412, "PUT", f"{BOOKIE}/gc")


async def test_compaction_is_suspended_and_goes_on() -> None:
    async with visiting() as visitor:
        suspend, resume = f"{BOOKIE}/gc/suspend_compaction", f"{BOOKIE}/gc/resume_compaction"
        said = await visitor.does("PUT", suspend, {"suspendMajor": True, "suspendMinor": True})
        assert said == "Suspend majorGC, minorGC on BookieServer: <b1>"
        await visitor.does("PUT", resume, {"resumeMinor": True})
        assert await visitor.get(suspend) == {
            "isMajorGcSuspended": "true",
            "isMinorGcSuspended": "false",
        }
        assert "suspendMajor" in await visitor.fails(400, "PUT", suspend, {})
        assert "resumeMajor" in await visitor.fails(400, "PUT", resume)


async def test_the_index_of_locations_is_compacted_on_demand() -> None:
    async with visiting() as visitor:
        path = f"{BOOKIE}/entry_location_compact"
        assert await visitor.get(path) == {"/b/locations": False}
        await visitor.fails(400, "PUT", path)
        assert "Not trigger" in await visitor.does("PUT", path, {})
        asked = {"entryLocationRocksDBCompact": True, "entryLocations": "/b/locations,/c"}
        assert "/b/locations" in await visitor.fails(400, "PUT", path, asked)
        assert await visitor.get(path) == {"/b/locations": False}
        said = await visitor.does("PUT", path, {"entryLocationRocksDBCompact": True})
        assert said == "Triggered entry Location RocksDB compact on bookie:<b1>"
        assert await visitor.get(path) == {"/b/locations": True}
