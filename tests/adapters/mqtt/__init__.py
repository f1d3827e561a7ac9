"""The MQTT adapter."""
