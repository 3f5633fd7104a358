#!/usr/bin/env python3
"""Run the benchmarks; the README beside this file says how: `bench/run.py --case publish`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.drive.command import main

if __name__ == "__main__":
    sys.exit(main())
