"""The REST API and the event stream, over Sanic.

Read `route` (declarations), `routes/devices` (handlers), `gate` (processing of requests), and `stream` (delivery of
events). Next, read `roles`, `tokens`, `keyring`, and `authenticator` (API keys), and `http_server` (connections).
Finally, read `app`, which connects all parts.
"""
