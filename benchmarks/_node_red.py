"""Runs Node-RED for comparison, with flows that do the same work as the hub. `node-red` must be on PATH (`npm
install node-red`)."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._client import ask
from benchmarks._processes import Running, free_port

PATIENCE_SECS = 60.0
PAUSE_SECS = 0.005
SETTINGS = """module.exports = {
  uiHost: "127.0.0.1", flowFile: "flows.json", credentialSecret: false, logging: { console: { level: "error" } } }"""

Flow = Sequence[Mapping[str, Any]]
Wires = Sequence[str]


@contextlib.contextmanager
def node_red(flow: Flow = (), credentials: Mapping[str, Mapping[str, str]] | None = None) -> Iterator[Running | None]:
    """Run Node-RED with this flow inside the `async with` block. The block begins with Node-RED's first response
    at `/ready`. Yield None if Node-RED is missing."""
    program = shutil.which("node-red")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as name:
        folder, port = Path(name), free_port()
        (folder / "settings.js").write_text(SETTINGS)
        nodes = [{"id": "tab", "type": "tab"}, *answer("ready", "/ready", "get", "msg.payload = {}"), *flow]
        (folder / "flows.json").write_text(json.dumps(nodes))
        (folder / "flows_cred.json").write_text(json.dumps(credentials or {}))
        began = time.perf_counter()
        command = [program, "--userDir", name, "--port", str(port), "flows.json"]
        process = subprocess.Popen(command, cwd=name, stdout=sys.stderr)
        try:
            _wait_for_answer(port, began + PATIENCE_SECS)
            yield Running(port=port, pid=process.pid, started_after=time.perf_counter() - began)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECS)


def _wait_for_answer(port: int, deadline: float) -> None:
    while True:
        try:
            ask(port, "GET", "/ready")
        except RuntimeError:  # Node-RED listens before its flows run
            if time.perf_counter() > deadline:
                raise
            time.sleep(PAUSE_SECS)
        else:
            return


def answer(name: str, path: str, method: str, code: str) -> Flow:
    """Return the nodes of a route whose response a JavaScript function computes."""
    return [
        _node(name, "http in", [f"{name}-do"], url=path, method=method),
        function(f"{name}-do", code, [f"{name}-answer"]),
        _node(f"{name}-answer", "http response"),
    ]


def function(name: str, code: str, wires: Wires, **fields: str) -> Mapping[str, Any]:
    """Return a node that runs JavaScript to change `msg`."""
    return _node(name, "function", wires, func=f"{code}; return msg", outputs=1, **fields)


def read_strip(strip: int, wires: Wires) -> Flow:
    """Return the nodes that receive the pushed messages of the strip at this port."""
    return [
        {"id": "strip", "type": "websocket-client", "path": f"ws://127.0.0.1:{strip}/ws", "wholemsg": "false"},
        _node("pushes", "websocket in", wires, client="strip"),
    ]


def send_to_readers() -> Flow:
    """Return nodes that forward each message for the node `events` to the readers of `/events`."""
    return [
        {"id": "listener", "type": "websocket-listener", "path": "/events", "wholemsg": "false"},
        function(
            "events",
            "delete msg._session; msg.payload = JSON.stringify({ type: 'x', value: msg.payload }).replace(': ', ':')",
            ["out"],
        ),
        _node("out", "websocket out", server="listener"),
    ]


def request_lamp(name: str, method: str, wires: Wires, code: str = "") -> Flow:
    """Return the nodes that send a request to the lamp at `msg.lamp`. `code` is JavaScript that creates the request's
    body."""
    prepare = f"msg.method = '{method}'; msg.url = 'http://127.0.0.1:' + msg.lamp + '/elgato/lights'; {code}"
    return [
        function(name, prepare, [f"{name}-request"]),
        _node(f"{name}-request", "http request", wires, method="use", ret="obj", persist=True, url=""),
    ]


def read_states(broker: int, topic: str, wires: Wires) -> Flow:
    """Return the nodes that receive JSON over MQTT. Pass the credentials of `broker` to `node_red`."""
    return [
        {"id": "broker", "type": "mqtt-broker", "broker": "127.0.0.1", "port": str(broker), "protocolVersion": "4"},
        _node("states", "mqtt in", wires, topic=topic, qos="0", datatype="json", broker="broker"),
    ]


def _node(name: str, kind: str, wires: Wires = (), **fields: Any) -> Mapping[str, Any]:
    return {"id": name, "type": kind, "z": "tab", "wires": [list(wires)], **fields}
