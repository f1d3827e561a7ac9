"""History: what was, in memory and within fixed bounds, never on the card: values of devices, commands, runs."""
