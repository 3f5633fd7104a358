"""What bookies lose for ever: the whole disk, or some bytes of an entry log."""

from contextlib import suppress

from magnetar.bookie.format.entry_log import HEADER_BYTES


def lose(bookie):
    """Have a bookie lose its disk."""
    world = bookie.world
    bookie.crash(power=True, silent=bookie.chance.random() < 0.5)
    bookie.lost = True
    world.promises.lost(bookie.bookie_id)
    world.run.trace.note(f"{bookie.name} has lost its disk")


def rot(bookie):
    """Damage durable bytes of an entry log; whether there is one."""
    disk = bookie.incarnation.disk if bookie.incarnation is not None else bookie.disk
    with suppress(OSError):
        directory = disk.directory("/bookie/ledgers/current")
        logs = {
            name: directory.open(name).size()
            for name in sorted(directory.names())
            if name.endswith(".log")
        }
        logs = {name: size for name, size in logs.items() if size > HEADER_BYTES}
        if logs:
            name = bookie.chance.choice(list(logs))
            bookie.world.promises.lost(bookie.bookie_id)
            bookie.world.run.trace.note(f"{bookie.name} has rot in {name}")
            _rot_in(disk, f"{directory.path}/{name}", logs[name], bookie.chance)
            return True
    return False


def _rot_in(disk, path, size, chance):
    durable = len(disk.image.file(disk._number(path)).durable)
    for _ in range(chance.choice((1, 5, 20))):
        offset = chance.randrange(HEADER_BYTES, size)
        if offset < durable:
            disk.rot(path, offset)
