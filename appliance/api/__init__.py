"""The REST API and the event stream, over Sanic.

Read `route` (declarations), `routes/devices` (handlers), `gate` (processing of requests), and `stream` (delivery of
events). Next, read `http_server` (connections). Finally, read `app`, which connects all parts.
"""
