"""Publishing: the hub's devices, scenes, and automations on a broker, announced in Home Assistant's discovery
format."""
