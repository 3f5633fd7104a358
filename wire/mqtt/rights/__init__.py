"""What MQTT's clients may publish and read."""
