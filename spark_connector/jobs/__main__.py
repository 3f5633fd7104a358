"""Says which jobs there are."""

import sys

TEXT = """\
usage: python -m magnetar.spark_connector.jobs.NAME --help

  audit      check topics: gaps, damage, duplicates; compare two topics
"""

if __name__ == "__main__":
    sys.stdout.write(TEXT)
