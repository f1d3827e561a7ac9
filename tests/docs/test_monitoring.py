"""docs/monitoring.md, with its dashboard and alert rules: all metrics exist, and tools can read the files."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.app import LIGHT, App
from tests.fakes.programs import need

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "monitoring.md").read_text()
ALERTS = DOCS / "monitoring" / "alerts.yml"
DASHBOARD = json.loads((DOCS / "monitoring" / "grafana.json").read_text())
NAME = re.compile(r"\b(?:lares|process)_[a-z_]+\b")

MADE_BY_PROMETHEUS = re.compile(r"_(bucket|sum|count)$")


async def exposed(app: App) -> set[str]:
    """Return the metric families of a home in which some events have happened."""
    await app.command(LIGHT, "power", "on")
    async with app.stream():
        text = str((await app.get("/metrics")).json)
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


async def test_dashboard_and_alerts_name_metrics_that_are_there(app: App) -> None:
    there = await exposed(app) | {"lares_executions_total"}
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(expressions) >= 16 and len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for text in (*expressions, ALERTS.read_text()):
        for name in NAME.findall(text):
            assert MADE_BY_PROMETHEUS.sub("", name) in there, name


def configurations(folder: Path) -> Iterator[list[str]]:
    """Yield promtool's arguments: the rules, each expression of the dashboard as a rule, and the page's
    configuration."""
    yield ["check", "rules", str(ALERTS)]
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(expressions)]
    (folder / "dashboard.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    yield ["check", "rules", str(folder / "dashboard.yml")]
    [shown] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (folder / "lares.key").write_text("a key")
    (folder / "alerts.yml").write_text(ALERTS.read_text())
    (folder / "prometheus.yml").write_text(shown.replace("/etc/prometheus/", f"{folder}/"))
    yield ["check", "config", str(folder / "prometheus.yml")]


@pytest.mark.slow
def test_promtool_takes_rules_expressions_and_configuration(tmp_path: Path) -> None:
    promtool = need("promtool")
    for arguments in configurations(tmp_path):
        checked = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, (arguments, checked.stdout, checked.stderr)
