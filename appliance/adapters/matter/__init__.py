"""Matter devices, through a controller server on the same machine.

Read `nodes` (the server's data), `clusters` (the meaning of the data), and `commands`. Next, read `known_nodes` (the
devices of each node), `live_nodes`, which applies the server's events and publishes the devices (`observation`) and
button presses (`presses`), `node_requests`, and `adapter`, which maintains the connection of `server`. `large_json`
parses the server's messages. `operations` pairs and shares devices. `probe` tests the server for `lares doctor`.
"""
