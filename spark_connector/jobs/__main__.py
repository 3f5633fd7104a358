"""Says which jobs there are."""

import sys

TEXT = """\
usage: python -m magnetar.spark_connector.jobs.NAME --help

  audit      check topics: gaps, damage, duplicates; compare two topics
  lag        how far subscriptions, consumer groups and MQTT sessions are behind
  lake       keep a table of topics, as Parquet files or Delta, each message once
  snapshot   keep the latest message of each key
  replay     copy a range of messages from topics to a topic
"""

if __name__ == "__main__":
    sys.stdout.write(TEXT)
