"""History: what was: values of devices, commands, executions; in memory within bounds, and shorter on the card."""
