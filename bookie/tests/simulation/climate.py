"""How a run is, from its seed: how large the cluster, how bad the faults, who takes part."""

from msgspec import Struct

from magnetar.bookie.client.quorum.striping import Striping

CALM_AT = 4.0
"""When all faults end."""
SIZES = [
    *[Striping(3, 3, 2)] * 4,
    *[Striping(3, 2, 2)] * 2,
    *[Striping(4, 3, 2)] * 2,
    Striping(5, 3, 2),
    Striping(3, 3, 3),
    Striping(4, 4, 3),
    Striping(2, 2, 2),
    Striping(2, 2, 1),
]


class Climate(Struct):
    """How a run is, from its seed."""

    striping: Striping
    bookies: int
    faults_per_second: float
    burst_seconds: float
    """Between two bursts of appends."""
    story_seconds: float
    """How long a writer has its ledger to itself."""
    answer_seconds: float
    reads_ahead: int
    down_max: int
    damage: bool
    repairers: int
    """How many processes of AutoRecovery run."""
    checks: bool
    """Whether its auditor also asks bookies that run for what they should have."""
    stock: int
    """How many bookies tell of a fence as Apache's do (`stock.py`)."""
    slow_disks: bool
    """Whether disks are slow for a while, so that answers come when nobody waits for them."""
    slow_links: bool
    """Whether the same happens on the way to clients."""
    full_disks: int
    """How many disks may be full at the same time."""
    explicit_lac_seconds: float
    """How often writers tell the LAC of their own accord; 0 for never."""
    tails: float
    """How often somebody follows a ledger with long polls."""
    verification_percentage: int
    """Of the entries that an auditor reads where it checks all ledgers."""
    stranger: bool
    """Whether all ledgers are checked by somebody else than who repairs them."""


def climate_of(chance):
    striping = chance.choice(SIZES)
    damage = chance.random() < 0.4
    spare = chance.choice((0, 1, 1, 2))
    if damage:  # those that are lost must have substitutes, else nothing can be stored again
        spare = max(spare, striping.ack - 1)
    return Climate(
        striping,
        bookies=striping.ensemble + spare,
        faults_per_second=chance.choice((3.0, 8.0, 15.0)),
        burst_seconds=chance.choice((0.01, 0.03, 0.1)),
        story_seconds=chance.choice((0.03, 0.1, 0.3, 1.0)),
        answer_seconds=chance.choice((0.5, 1.5)),
        reads_ahead=chance.choice((2, 4, 8, 64)),
        down_max=chance.choice((1, 2, 3)),
        damage=damage,
        repairers=chance.choice((0, 0, 0, 1, 1, 2, 2)),
        checks=chance.random() < (0.8 if damage else 0.5),
        stock=chance.choice((0, 0, 0, 1, striping.ensemble + spare)),
        slow_disks=chance.random() < 0.2,
        slow_links=chance.random() < 0.2,
        full_disks=chance.choice((0, 0, 1, 2)),
        explicit_lac_seconds=chance.choice((0.0, 0.02, 0.1)),
        tails=chance.choice((0.0, 0.2, 0.5)),
        verification_percentage=chance.choice((0, 25, 100, 100)),
        stranger=chance.random() < 0.4,
    )
