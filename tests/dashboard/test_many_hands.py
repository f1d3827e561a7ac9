"""Actions in quick succession, and simultaneous actions of several people. No change and no unfinished input is
lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.dashboard.conftest import tile, visiting
from tests.dashboard.homes import large
from tests.fakes.app import App, open_app
from tests.fakes.patience import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HOME = """
[adapters.virtual]
[[adapters.virtual.devices]]
id = "stove"
name = "Stove"
[adapters.virtual.devices.attributes]
target_temperature = { value = 20, unit = "°C" }
"custom.virtual.word" = "one"
[[adapters.virtual.devices]]
id = "blind"
name = "Blind"
[adapters.virtual.devices.attributes]
cover_position = 50
"""
STOVE = "virtual:stove"


def module(name: str) -> str:
    """Return a JavaScript expression for the address of a loaded module."""
    return f"""performance.getEntriesByType("resource").find(({{ name }}) => name.endsWith("/{name}")).name"""


def shown(app: App, attribute: str) -> object:
    return app.hub.registry.get_device(STOVE).attributes[attribute]


async def test_quick_actions_are_all_sent_and_a_field_follows_until_a_person_types(browser: Browser) -> None:
    async def wait(route: Route) -> None:
        await asyncio.sleep(0.3)
        await route.continue_()

    async with open_app(adapters=HOME) as app, visiting(browser, app) as visit:
        page = visit.page
        await page.route("**/command", wait)
        await visit.open("#/device/virtual%3Astove")
        for _ in range(4):
            await page.get_by_role("button", name="Stove: Target +").click()
        await until(lambda: shown(app, "target_temperature") == {"value": 22.0, "unit": "°C"}, 20)

        word = page.get_by_role("textbox", name="Stove: Word")
        await expect(word).to_have_value("one")
        await app.command(STOVE, "custom.virtual.word", "set", "two")
        await expect(word).to_have_value("two")
        await word.fill("half")
        await app.command(STOVE, "custom.virtual.word", "set", "three")
        await expect(page.locator("dd", has_text="three")).to_have_count(1)
        await expect(word).to_have_value("half")
        await word.press("Enter")
        await until(lambda: shown(app, "custom.virtual.word") == "half", 20)
        await app.command(STOVE, "custom.virtual.word", "set", "four")
        await expect(word).to_have_value("four")


async def test_a_question_waits_for_the_previous_one_and_escape_does_not_close_the_login(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.open()
        await page.evaluate(
            f"""async () => {{
                const {{ confirm }} = await import({module("dialog.js")});
                window.answers = [];
                for (const each of ["first", "second"]) {{
                    confirm(each, "Yes", "Code").then((answer) => window.answers.push(answer));
                }}
            }}"""
        )
        await expect(dialog).to_contain_text("first")
        await dialog.get_by_label("Code").fill("1234")
        await page.keyboard.press("Enter")
        await expect(dialog).to_contain_text("second")
        await expect(dialog.get_by_label("Code")).to_have_value("")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        assert await page.evaluate("window.answers") == ["1234", False]
        await visit.go("settings/keys")
        await page.get_by_role("button", name="Forget the key").click()
        for _ in range(3):
            await expect(dialog).to_be_visible()
            await page.keyboard.press("Escape")
            await page.wait_for_timeout(50)
        await expect(dialog).to_be_visible()


async def test_a_question_that_is_answered_twice_closes_no_other(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await visit.open()
        await visit.page.evaluate(
            f"""async () => {{
                const {{ confirm }} = await import({module("dialog.js")});
                const {{ state }} = await import({module("store.js")});
                const first = confirm("first", "Yes");
                confirm("second", "Yes").then((answer) => window.answer = answer);
                await new Promise((go) => setTimeout(go));
                const {{ close }} = state.question;
                close(true);
                await first;
                await new Promise((go) => setTimeout(go));
                close(true); // before anything is drawn, as a double click on a slow device
            }}"""
        )
        await expect(visit.page.get_by_role("dialog")).to_contain_text("second")
        await visit.page.keyboard.press("Escape")
        await visit.page.wait_for_function("window.answer === false")


async def test_a_stop_discards_waiting_commands(browser: Browser) -> None:
    sent: list[str] = []

    async def wait(route: Route) -> None:
        sent.append((route.request.post_data_json or {})["action"])
        await asyncio.sleep(3)
        await route.continue_()

    async with open_app(adapters=HOME) as app, visiting(browser, app) as visit:
        await visit.page.route("**/command", wait)
        await visit.open("#/device/virtual%3Ablind")
        for order in ("Open", "Close", "Stop"):
            await visit.page.get_by_role("button", name=f"Blind: Position: {order}").click()
        await expect(visit.page.locator("main [aria-busy]")).to_have_count(0)
        await visit.page.wait_for_timeout(1000)
        assert sent == ["open", "stop"]


@pytest.mark.parametrize("answer", [None, '{"resolution": "r'], ids=["none", "half of one"])
async def test_failed_requests_are_repeated_after_an_outage(browser: Browser, answer: str | None) -> None:
    async def lose(route: Route) -> None:
        await (route.fulfill(body=answer) if answer else route.abort())

    async with open_app(adapters=HOME) as app, visiting(browser, app) as visit:
        page, reported = visit.page, visit.page.locator(".picture")
        set_online = f"""async (isOnline) => {{
            const {{ changed, state }} = await import({module("store.js")});
            state.isOnline = isOnline;
            changed();
        }}"""
        await visit.open()
        await page.evaluate(set_online, False)
        await page.route("**/history/**", lose)
        await visit.go("device/virtual%3Astove")
        await expect(reported).to_have_text("The hub does not answer.")
        await page.unroute("**/history/**")
        await page.evaluate(set_online, True)
        await expect(page.locator("figure.chart")).to_be_visible()


async def test_unfinished_input_survives_a_failed_refresh(browser: Browser) -> None:
    refused: list[str] = []

    async def refuse(route: Route) -> None:
        refused.append(route.request.url)
        await route.abort()

    async with open_app() as app, visiting(browser, app) as visit:
        await app.ask("PUT", "/variables/mode", json={"value": "away"})
        await visit.open("#/automations")
        field = visit.page.get_by_label("Value of mode")
        await field.fill("at ho")
        await visit.page.route("**/variables", refuse)
        await until(lambda: len(refused) > 1, 30)  # the page already has the first answer
        await expect(field).to_have_value("at ho")


async def test_pages_with_one_key_keep_each_others_changes(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as one, visiting(browser, app) as other:
        await large(app, 4)
        for visit in (one, other):
            await visit.open()
            await visit.page.get_by_role("button", name="Favourites and order").click()
        await tile(one.page, "Lamp 1").get_by_role("button", name="Hide Lamp 1").click()
        await until(lambda: kept(app).get("hidden") == ["shown:lamp_001"], 20)
        await tile(other.page, "Lamp 2").get_by_role("button", name="Favourite: Lamp 2").click()
        await until(lambda: kept(app).get("favourites") == ["shown:lamp_002"], 20)
        assert kept(app)["hidden"] == ["shown:lamp_001"]
        await tile(one.page, "Lamp 3").get_by_role("button", name="Favourite: Lamp 3").click()
        await until(lambda: kept(app)["favourites"] == ["shown:lamp_002", "shown:lamp_003"], 20)


async def test_a_question_closes_with_its_page(browser: Browser) -> None:
    lock = HOME + '[[adapters.virtual.devices]]\nid = "door"\nkind = "Switch"\nname = "Door"\nclass = "lock"\n'
    lock += 'attributes = { lock = "locked" }\n'
    async with open_app(adapters=lock) as app, visiting(browser, app) as visit:
        await visit.open("#/settings")
        await visit.go("device/virtual%3Adoor")
        await visit.page.get_by_role("button", name="Unlock").first.click()
        await expect(visit.page.get_by_role("dialog")).to_be_visible()
        await visit.page.go_back()
        await expect(visit.page.get_by_role("dialog")).to_have_count(0)
        assert app.hub.registry.get_device("virtual:door").attributes["lock"] == "locked"


async def test_an_unsaved_preference_is_saved_with_the_next_one(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await large(app, 4)
        await visit.open()
        page = visit.page
        await page.get_by_role("button", name="Favourites and order").click()
        await page.route(
            "**/preferences", lambda route: route.abort() if route.request.method == "PUT" else route.continue_()
        )
        await tile(page, "Lamp 1").get_by_role("button", name="Hide Lamp 1").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.unroute("**/preferences")
        await tile(page, "Lamp 2").get_by_role("button", name="Favourite: Lamp 2").click()
        await until(lambda: kept(app) == {"favourites": ["shown:lamp_002"], "hidden": ["shown:lamp_001"]}, 20)
        await tile(page, "Lamp 3").get_by_role("button", name="Hide Lamp 3").click()
        await page.close()
        await until(lambda: kept(app).get("hidden") == ["shown:lamp_001", "shown:lamp_003"], 20)


def kept(app: App) -> dict[str, object]:
    return next((value for _, value in app.hub.store.document.items("preferences/")), {})


async def test_a_card_can_be_dragged_past_several_others(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        await large(app, 30)  # three in each room
        page = visit.page
        await visit.open()
        await page.get_by_role("button", name="Favourites and order").click()
        room = page.get_by_role("region", name="Room 0", exact=True)
        await slowly(page, "Move Lamp 20", (await middle(page, room, 1), await middle(page, room, 0)))
        await expect(room.locator("strong")).to_have_text(["Lamp 20", "Lamp 0", "Lamp 10"])
        await slowly(page, "Move Lamp 20", (await middle(page, room, 1), await middle(page, room, 2)))
        await expect(room.locator("strong")).to_have_text(["Lamp 0", "Lamp 10", "Lamp 20"])


async def middle(page: Page, room: Locator, at: int) -> tuple[float, float]:
    """Return the middle of a tile of the room, once the page shows the tile."""
    tile, box = room.locator("article").nth(at), None
    while box is None:  # the page can replace a visible tile before the box is measured
        await expect(tile).to_be_visible()
        box = await tile.bounding_box()
    return box["x"] + box["width"] / 3, box["y"] + box["height"] / 2


async def slowly(page: Page, handle: str, way: tuple[tuple[float, float], ...]) -> None:
    """Drag the handle slowly over each of these places."""
    await page.get_by_role("button", name=handle).hover()
    await page.mouse.down()
    for x, y in way:
        await page.mouse.move(x, y, steps=4)
        await page.wait_for_timeout(100)
    await page.mouse.up()


FAILING = """return { id = "failing", name = "Failing", trigger = { type = "interval", every_secs = 3600 },
    execute = function(ctx) error("no such lamp") end }"""


async def test_changes_by_others_appear_without_a_reload(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "automations"
    folder.mkdir(parents=True)
    (folder / "failing.lua").write_text(FAILING)
    async with open_app(root=tmp_path) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/automations")
        await expect(page.locator(".item a.title")).to_contain_text("next")
        await app.post("/automations/failing/execute", {})
        await app.post("/automations/failing/enabled", {"enabled": False})
        await expect(page.locator(".item a.title")).to_contain_text("no such lamp")
        await expect(page.get_by_role("switch", name="Failing")).to_have_attribute("aria-checked", "false")
        assert visit.asked("/overview") == 1


DOOR = """[[adapters.virtual.devices]]
id = "door"
kind = "Switch"
name = "Door"
class = "lock"
attributes = { lock = "locked", garage_door = "closed" }
"""


async def test_a_question_closes_if_another_person_answers_it(browser: Browser) -> None:
    async with open_app(adapters=HOME + DOOR) as app, visiting(browser, app) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.open("#/device/virtual%3Adoor")
        await expect(page.get_by_role("button", name="Garage: Open")).to_be_enabled()
        await expect(page.get_by_role("button", name="Garage: Close")).to_be_disabled()
        await page.get_by_role("button", name="Unlock").first.click()
        await expect(dialog).to_be_visible()
        await app.command(STOVE, "target_temperature", "set", {"value": 25, "unit": "°C"})
        await expect(page.locator("main")).to_contain_text("Unlock")
        await expect(dialog).to_be_visible()
        await app.command("virtual:door", "lock", "unlock")
        await expect(dialog).to_have_count(0)
        await app.post("/rooms", {"id": "den", "name": "Den"})
        await visit.go("settings/rooms")
        await page.get_by_role("button", name="Delete Den").click()
        await expect(dialog).to_be_visible()
        await app.post("/rooms", {"id": "den", "name": "Nursery"})
        await expect(dialog).to_have_count(0)


async def test_a_variable_keeps_its_type_and_a_chart_follows_new_values(browser: Browser) -> None:
    async with open_app(adapters=HOME) as app, visiting(browser, app) as visit:
        page, variables = visit.page, app.hub.environment.variables
        for name, value in {"text": "away", "count": 3, "flag": True, "all": [1]}.items():
            await app.ask("PUT", f"/variables/{name}", json={"value": value})
        await visit.open("#/automations")
        for name, typed, kept_ in (("text", "5", "5"), ("count", "4.5", 4.5), ("all", "[2]", [2])):
            await page.get_by_label(f"Value of {name}").fill(typed)
            await page.keyboard.press("Enter")
            await until(lambda name=name, kept_=kept_: variables.find(name) == kept_, 20)  # type: ignore[misc]
        await page.get_by_label("Value of all").fill("[2")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.get_by_role("switch", name="Value of flag").click()
        await until(lambda: variables.find("flag") is False, 20)

        await visit.go("device/virtual%3Astove")
        await expect(page.locator("figure.chart figcaption")).to_contain_text("20°C")
        history = [each for each in visit.requests if "/history/" in each]
        await app.command(STOVE, "target_temperature", "set", {"value": 27, "unit": "°C"})
        await expect(page.locator("figure.chart figcaption")).to_contain_text("27°C")
        assert [each for each in visit.requests if "/history/" in each] == history


async def test_a_text_that_is_typed_during_a_save_is_kept(browser: Browser) -> None:
    sent, is_released = list[object](), asyncio.Event()

    async def wait(route: Route) -> None:
        sent.append(route.request.post_data_json)
        await is_released.wait()
        await route.continue_()

    async with open_app() as app, visiting(browser, app) as visit:
        await app.ask("PUT", "/variables/mode", json={"value": "away"})
        await visit.open("#/automations")
        await visit.page.route("**/variables/mode", wait)
        field = visit.page.get_by_label("Value of mode")
        await field.fill("home")
        await field.press("Enter")
        await until(lambda: bool(sent), 20)
        await field.fill("asleep")
        async with visit.page.expect_response("**/variables"):  # the page refreshes the list after the save
            is_released.set()
        await field.press("Enter")
        await until(lambda: app.hub.environment.variables.find("mode") == "asleep", 20)


async def test_each_part_of_a_colour_is_sent_within_the_rate_limit(browser: Browser) -> None:
    colour = HOME + '[[adapters.virtual.devices]]\nid = "lamp"\nkind = "Light"\nname = "Lamp"\nattributes = '
    colour += '{ power = "off", color_hs = { hue = 10, saturation = 10 } }\n'
    toml = "[api.rate_limit]\nenabled = true\nrequests_per_second = 1\nburst_size = 1\n"
    async with open_app(adapters=colour, toml=toml) as app, visiting(browser, app) as visit:
        page = visit.page
        await visit.open("#/device/virtual%3Alamp")
        for name in ("Lamp: Colour", "Lamp: Colour, Saturation"):
            await page.get_by_role("slider", name=name, exact=True).press("ArrowRight")
        await page.get_by_role("switch", name="Lamp: Power").click()
        lamp = app.hub.registry.get_device
        await until(lambda: lamp("virtual:lamp").attributes["color_hs"] == {"hue": 11, "saturation": 11}, 20)
        await until(lambda: lamp("virtual:lamp").attributes["power"] == "on", 20)
        await expect(page.get_by_role("alert")).to_have_count(0)


async def test_an_unknown_address_is_reported_and_a_link_with_a_key_opens_one_stream(browser: Browser) -> None:
    async with open_app() as app, visiting(browser, app) as visit:
        sockets: list[str] = []
        visit.page.on("websocket", lambda socket: sockets.append(socket.url))
        await visit.open("#/nonsense")
        await expect(visit.page.get_by_role("alert")).to_contain_text("There is no page #/nonsense")
        assert visit.page.url.endswith("/dashboard/#/") and len(sockets) == 1
        await visit.go("settings")
        await expect(visit.page.get_by_role("alert")).to_have_count(0)
