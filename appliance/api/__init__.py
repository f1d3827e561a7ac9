"""The API: REST and the event stream, over Sanic."""
