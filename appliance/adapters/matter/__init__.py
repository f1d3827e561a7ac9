"""Matter devices, through a controller server on the same machine.

Read `nodes` (the server's data), `clusters` (their meaning), and `requests` (commands); then `live_nodes`, which
publishes the nodes as devices, and `adapter`, which keeps the connection of `server`.
"""
