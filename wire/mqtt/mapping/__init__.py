"""MQTT topics and the topics that store them. Pure."""
