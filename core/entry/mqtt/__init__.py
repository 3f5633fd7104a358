"""MQTT's stored form."""
