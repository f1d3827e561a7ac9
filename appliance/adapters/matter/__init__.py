"""Matter devices, through a controller server on the same machine.

Read `nodes` (the server's data), `clusters` (the meaning of the data), and `commands`. Next, read `known_nodes` (the
devices of each node), `live_nodes`, which applies the server's events and publishes the devices (`observation`),
`node_requests`, and `adapter`, which maintains the connection of `server`. `operations` pairs and shares devices.
"""
