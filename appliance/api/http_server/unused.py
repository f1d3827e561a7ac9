"""Modules of libraries that the hub does not use. Importing these modules would take memory and time."""

from __future__ import annotations

import sys
from types import ModuleType

UNUSED = {
    "aiofiles": ("open",),
    "aiofiles.os": ("stat",),
    "sanic.application.logo": ("get_logo",),
    "sanic.application.motd": ("MOTD",),
    "sanic.http.http3": ("Http3",),
    "sanic.http.tls": ("get_ssl_context", "process_to_context"),
    "sanic.http.tls.context": ("SanicSSLContext",),
    "sanic.pages.directory_page": ("DirectoryPage", "FileInfo"),
    "sanic.pages.error": ("ErrorPage",),
    "sanic.server.protocols.websocket_protocol": ("WebSocketProtocol",),
    "sanic.server.runners": ("serve",),
    "sanic.server.websockets.connection": ("WebSocketConnection",),
    "sanic.server.websockets.impl": ("ConnectionClosed", "WebsocketImplProtocol"),
    "sanic.touchup.schemes": ("BaseScheme",),
    "sanic.worker.inspector": ("Inspector",),
    "sanic.worker.loader": ("AppLoader", "CertLoader"),
    "sanic.worker.manager": ("WorkerManager",),
    "sanic.worker.multiplexer": ("WorkerMultiplexer",),
    "sanic.worker.reloader": ("Reloader",),
    "sanic.worker.serve": ("worker_serve",),
    "websockets.version": ("version",),
}
"""The names that are imported from each module. Sanic's error pages would import 2 MB of libraries, and
`websockets.version` would import `importlib.metadata`. The hub's own server replaces Sanic's processes and
WebSockets."""


def stub_unused() -> None:
    """Replace the modules with empty modules. Call this function before the first import of Sanic."""
    for name, imported in UNUSED.items():
        module = sys.modules.setdefault(name, ModuleType(name))
        for each in imported:
            vars(module).setdefault(each, None)
