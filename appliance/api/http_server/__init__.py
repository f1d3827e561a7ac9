"""The HTTP server: everything from the socket to the request, and back.

Read `listener` (accepts connections), `connection_limiter` (how many), `connection` (reads bytes as requests or as
WebSocket frames), `http1` and `framing` (requests), `websocket_protocol` and `websocket`, and `application` (passes
requests to the API).
README.md lists each internal name of Sanic that these modules use, with the reason and the test.
"""
