"""The simulation of automations for `lares simulate` and `POST /simulate`.

Read `preparation` and `device_events` (the input), `simulation` (runs the automations), `clock` and `home` (simulated
time and devices), and `printer` (the output). For the API, `hub_simulations` runs each simulation in a `process`.
`priority` gives the hub priority. The simulators in `adapters` have no part in a simulation: they imitate devices for
tests and for the demo.
"""
