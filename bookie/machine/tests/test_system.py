"""The machine this process runs on."""

import time

import trio

from magnetar.bookie.machine.system import system_machine


async def test_it_is_this_one(tmp_path):
    machine = system_machine()
    assert abs(machine.clock.wall_ms() - time.time() * 1000) < 60_000
    assert await machine.threads.run(lambda: trio.lowlevel.in_trio_run()) is False
    assert {machine.random_bits(4) for _ in range(200)} <= set(range(16))
    assert machine.random_bits(128) != machine.random_bits(128)
    directory = machine.disk.directory(str(tmp_path)).directory("index")
    database = machine.databases(1 << 20).open(directory, 1 << 16, print)
    assert database.get(b"x") is None
    database.close()
