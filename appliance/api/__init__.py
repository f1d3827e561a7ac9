"""The roof: REST and the event stream, over Sanic."""
