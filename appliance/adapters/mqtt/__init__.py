"""MQTT brokers: what announces itself there in the format of Home Assistant or Tasmota becomes devices."""
