"""Matter devices, through a controller server on the same machine.

Read `nodes` (the server's data), `clusters` (the meaning of the data), and `commands`. Next, read `live_nodes`, which
publishes the nodes as devices (`observation`), `node_requests`, and `adapter`, which maintains the connection of
`server`. `operations` pairs and shares devices.
"""
