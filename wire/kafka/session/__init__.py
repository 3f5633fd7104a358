"""What Kafka's requests mean to the broker."""
