"""Server-sent events of a simulated vendor."""

from __future__ import annotations

import asyncio

from aiohttp import web


async def hold_events(
    request: web.Request, streams: set[web.StreamResponse], greeting: bytes = b""
) -> web.StreamResponse:
    """Respond with a stream of events. While the stream is open, `streams` contains it."""
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    if greeting:
        await stream.write(greeting)
    streams.add(stream)
    try:
        await asyncio.Event().wait()
    finally:
        streams.discard(stream)
    return stream
