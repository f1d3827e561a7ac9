"""Out: this hub's own devices, scenes and automations on the broker, in the format that announcers use."""
