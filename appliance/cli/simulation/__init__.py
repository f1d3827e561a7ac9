"""The simulation of automations for `lares simulate` and `POST /simulate`."""
