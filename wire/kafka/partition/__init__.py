"""A partition as Kafka sees it: its log, its producers, the batches that it takes and gives."""
