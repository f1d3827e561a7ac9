"""The page describes triggers and conditions of automations in the language of the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from appliance.automations.triggers.kinds import TRIGGER_KINDS
from tests.dashboard.conftest import visiting
from tests.fakes.app import LIGHT, App, open_app
from tests.fakes.lua import write
from tests.journeys.test_every_word import CONDITIONS, PLACED, TRIGGERS

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


def everything() -> str:
    triggers = ", ".join(f"{{ type = '{kind}', {fields} }}" for kind, fields in TRIGGERS.items())
    conditions = ", ".join(f"{{ type = '{kind}', {fields} }}" for kind, (fields, *_) in CONDITIONS.items())
    return f"""return {{ id = "all", name = "All", triggers = {{ {triggers} }},
        conditions = {{ {conditions} }}, execute = function(ctx) end }}"""


GERMAN = [
    "Schreibtisch: Ein/Aus = Ein (jetzt Ein)",
    "Schreibtisch: Helligkeit > 5\N{NO-BREAK SPACE}% (jetzt 50\N{NO-BREAK SPACE}%)",
    "Raum Arbeitszimmer: irgendein Ereignis",
    "Variable mode ändert sich",
    "Der Timer off endet",
    "Der Hook bell wird aufgerufen",
    "Um 07:00, Montag",
    "Bei Sonnenaufgang -15 Min.",
    "Bei Sonnenuntergang, Sonntag",
    "24. Dezember, 18:00",
    "Nach dem Ausdruck 0 0 7 * * MON-FRI (UTC)",
    "Alle 60 Sek.",
    "Der Adapter roku_tv startet",
    "Etwas schlägt fehl: tv",
    "1: Schreibtisch: Helligkeit > 90\N{NO-BREAK SPACE}% (jetzt 50\N{NO-BREAK SPACE}%) – trifft nicht zu",
    "2: x:ann: Anwesenheit = Anwesend – trifft nicht zu",
    "3: 01:00 – 02:00",
    "4: Raum attic: Mindestens 1 der Geräte – trifft nicht zu",
    "5: Gruppe all: Mindestens 1 der Geräte – trifft nicht zu",
    "6: Nach Sonnenuntergang, Vor Sonnenaufgang",
    "7: Montag",
    "8: 1. Juni – 30. Juni",
    "9: Variable mode = away – trifft nicht zu",
    "10: Alle diese Bedingungen – trifft nicht zu",
    "11: Mindestens eine dieser Bedingungen",
    "12: Keine dieser Bedingungen",
]
"""The beginning of each description, in the order of the tables."""

LANGUAGES = {
    "en-GB": "does not hold",
    "es-ES": "no se cumple",
    "fr-FR": "faux",
    "it-IT": "falso",
    "nl-NL": "klopt niet",
    "pl-PL": "niespełnione",
}


UNITS = """async () => {
    const entries = performance.getEntriesByType("resource");
    const { withUnit } = await import(entries.find(({ name }) => name.endsWith("/words.js")).name);
    const { doing } = await import(entries.find(({ name }) => name.endsWith("/values.js")).name);
    if (doing("command x:y color_hs set {'hue': 10}") || doing("wait_for x:y power")) return "doing";
    return ["%", "°C", "°", "lx"].map((unit) => withUnit(2, unit).replace("\\u00A0", "_")).join(", ");
}"""
WRITTEN = {
    **dict.fromkeys(("en-GB", "nl-NL", "pl-PL"), "2%, 2°C, 2°, 2 lx"),
    **dict.fromkeys(("de-DE", "es-ES", "fr-FR"), "2_%, 2_°C, 2°, 2 lx"),
    "it-IT": "2%, 2_°C, 2°, 2 lx",
}
"""The format of numbers with units in each language. `_` is a non-breaking space."""


async def home(app: App) -> None:
    """Name a lamp and put it in a room. Create two refused runs: one because of a condition, and one because the
    automation is disabled."""
    await app.post("/rooms", {"id": "den", "name": "Arbeitszimmer"})
    await app.post(f"/devices/{LIGHT}/name", {"name": "Schreibtisch"})
    await app.command(LIGHT, "power", "on")
    await app.command(LIGHT, "brightness", "set", 50)
    await app.post("/automations/all/execute")
    await app.post("/automations/all/enabled", {"enabled": False})
    await app.ask("PUT", "/variables/mode", json={"value": "home"})
    await app.post("/automations/all/enabled", {"enabled": True})


async def late(route: Route) -> None:
    """Answer after the other requests that were sent at the same time."""
    await asyncio.sleep(0.5)
    await route.continue_()


async def test_triggers_and_conditions_are_described_in_every_language(browser: Browser, tmp_path: Path) -> None:
    async with open_app(root=write(tmp_path, {"automations/all.lua": everything()}), toml=PLACED) as app:
        await home(app)
        async with visiting(browser, app, locale="de-DE") as visit:
            past = visit.page.get_by_role("region", name="Was geschah")
            await visit.page.route("**/why?*", late)
            await visit.open("#/automations/all")
            await expect(past).to_contain_text("Nicht ausgeführt: Bedingung")
            assert await visit.page.evaluate(UNITS) == WRITTEN["de-DE"]
            reported = visit.page.get_by_role("region", name="Wann sie läuft").locator(".runs:not([lang]) > li")
            tops = visit.page.get_by_role("region", name="Wann sie läuft").locator(".card > .runs:not([lang]) > li")
            await expect(tops).to_have_count(len(GERMAN))
            for text, begin in zip(await tops.all_inner_texts(), GERMAN, strict=True):
                assert text.replace("\n", " ").startswith(begin), (text, begin)
            assert await reported.count() > len(GERMAN)  # including nested ones
            refused = "Nicht ausgeführt: Bedingung 1: Schreibtisch: Helligkeit > 90_% (war 50_%)"
            await expect(past).to_contain_text(refused.replace("_", "\N{NO-BREAK SPACE}"), use_inner_text=True)
            await expect(past.get_by_text("Nicht ausgeführt, sie ist ausgeschaltet.", exact=True)).to_be_visible()
            await expect(past.locator("p", has_text="(war 50").locator("[lang=en]")).to_have_count(0)
        for locale, words in LANGUAGES.items():
            async with visiting(browser, app, locale=locale) as visit:
                await visit.open("#/automations/all")
                assert await visit.page.evaluate(UNITS) == WRITTEN[locale]
                tops = visit.page.locator("section .card > .runs:not([lang]) > li", has_not=visit.page.locator("p"))
                await expect(tops).to_have_count(len(GERMAN))
                texts = await tops.all_inner_texts()
                assert texts[len(TRIGGERS)].endswith(words), (locale, texts)
                assert not [each for each in texts if set("{}_") & set(each.replace("roku_tv", ""))], (locale, texts)


async def test_a_word_that_blocked_a_run_is_translated(browser: Browser, tmp_path: Path) -> None:
    text = f"""return {{ id = "all", name = "All", trigger = {{ type = "interval", every_secs = 3600 }},
        conditions = {{ {{ type = "device_state", device_id = "{LIGHT}", attribute = "power", equals = "on" }} }},
        execute = function(ctx) end }}"""
    async with open_app(root=write(tmp_path, {"automations/all.lua": text})) as app:
        await app.command(LIGHT, "power", "off")
        await app.post("/automations/all/execute")
        async with visiting(browser, app, locale="de-DE") as visit:
            await visit.open("#/automations/all")
            await expect(visit.page.get_by_role("region", name="Was geschah")).to_contain_text(
                "Ein/Aus = Ein (war Aus)"
            )


async def test_a_run_of_which_only_the_type_is_known_has_a_cause(browser: Browser, tmp_path: Path) -> None:
    text = (
        'return { id = "all", name = "All", trigger = { type = "webhook", hook = "x" }, execute = function(ctx) end }'
    )
    entries = [
        {"executed_at": "2026-03-01T10:00:00Z", "status": "ok", "duration_ms": 3, "trigger_payload": {"type": kind}}
        for kind in TRIGGER_KINDS
    ]

    async def answer(route: Route) -> None:
        await route.fulfill(json={"entries": entries})

    async with open_app(root=write(tmp_path, {"automations/all.lua": text})) as app:
        async with visiting(browser, app, locale="de-DE") as visit:
            await visit.page.route("**/automations/all/history*", answer)
            await visit.open("#/automations/all")
            causes = visit.page.locator(".runs > li > .hint")
            await expect(causes).to_have_count(len(TRIGGER_KINDS))
            texts = dict(zip(TRIGGER_KINDS, await causes.all_inner_texts(), strict=True))
            assert texts["webhook"] == "Ein Hook wird aufgerufen"
            untranslated = {kind for kind, text in texts.items() if text == kind.capitalize().replace("_", " ")}
            assert not untranslated and not [text for text in texts.values() if "undefined" in text]
