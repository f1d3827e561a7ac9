"""The REST API and the event stream, over Sanic.

Read `route` (declarations), `routes/devices` (handlers), `gate` (processing of requests), and `stream` (delivery of
events). Next, read `sanic_http` (connections). Finally, read `app` and `server`, which connect all parts.
"""
