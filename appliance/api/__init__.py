"""REST and the event stream, over Sanic.

Read `route` (a declaration), `routes/devices` (its handlers), `gate` (the way of a request), and `stream` (the way of
an event); then `sanic_http` (connections), and `app` and `server`, which connect all parts.
"""
