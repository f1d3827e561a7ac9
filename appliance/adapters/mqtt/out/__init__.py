"""Publishing: this hub's own devices, scenes and automations on a broker, announced by Home Assistant's discovery."""
