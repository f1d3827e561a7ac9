"""The dashboard's files over HTTP: they are public, cached by content, and compressed, and connect only to the
hub."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import aiohttp
import pytest

import appliance
from appliance import config
from appliance.adapters.dispatch import Status
from appliance.api.error_codes import CODES
from appliance.api.routes.dashboard import FOLDER, load_files, security_headers
from appliance.cli import archive
from appliance.health import AdapterStatus
from appliance.history.execution_history import ExecutionStatus
from appliance.home.capabilities import CAPABILITIES
from tests.fakes import process
from tests.fakes.app import LIGHT, MASTER, App, open_app

PAGE = "/dashboard/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A response with its raw bytes."""

    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """Provide a client that does not decompress."""
    async with aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=["Accept-Encoding"]) as opened:
        yield opened


async def fetch(app: App, session: aiohttp.ClientSession, path: str, method: str = "GET", **headers: str) -> Raw:
    """Return the hub's response. Names of headers have underscores."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with session.request(method, app.url + path, headers=sent, allow_redirects=False) as response:
        got = {name.lower(): value for name, value in response.headers.items()}
        return Raw(status=response.status, headers=got, body=await response.read())


async def test_every_file_is_public_and_correctly_typed(app: App, session: aiohttp.ClientSession) -> None:
    for path, file in load_files().items():
        plain = await fetch(app, session, path)
        assert (plain.status, plain.body, plain.headers["content-type"]) == (200, file.body, file.type), path
        packed = await fetch(app, session, path, Accept_Encoding="br, gzip;q=0.5")
        is_packed = packed.headers.get("content-encoding") == "gzip"
        assert (gzip.decompress(packed.body) if is_packed else packed.body) == file.body, path
        assert is_packed or path.endswith(".png"), path
        refused = await fetch(app, session, path, Accept_Encoding="gzip;q=0")
        assert "content-encoding" not in refused.headers, path
        again = await fetch(app, session, path, If_None_Match=plain.headers["etag"])
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", plain.headers["etag"]), path
        head = await fetch(app, session, path, method="HEAD")
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(file.body))), path
        is_hashed = re.fullmatch(r"/dashboard/[0-9a-f]{16}/.+", path) is not None
        assert ("immutable" in plain.headers["cache-control"]) == is_hashed, path
        assert plain.headers["vary"] == "Accept-Encoding", path


async def test_the_content_policy_allows_only_the_hub(app: App, session: aiohttp.ClientSession) -> None:
    for path in load_files():
        headers = (await fetch(app, session, path)).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy and "*" not in policy and "data:" not in policy, policy
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';"), policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    for host in ("home; script-src http://evil", "a,b", "", "x' 'unsafe-inline"):
        assert "connect-src 'self';" in security_headers(host)["content-security-policy"], host
    assert (
        "connect-src 'self' ws://[::1]:3000 wss://[::1]:3000;"
        in (security_headers("[::1]:3000")["content-security-policy"])
    )


@pytest.mark.parametrize(
    ("languages", "found"), [("de-AT,en;q=0.5", "de"), ("ja, pl;q=0.3", "pl"), ("ja", None), ("", None), ("EN", "en")]
)
async def test_the_page_preloads_the_words_of_the_browsers_language(
    app: App, session: aiohttp.ClientSession, languages: str, found: str | None
) -> None:
    link = (await fetch(app, session, PAGE, Accept_Language=languages)).headers.get("link")
    if found is None:
        assert link is None
        return
    assert link is not None
    address = re.fullmatch(r"<(\S+)>; rel=modulepreload", link)
    assert address is not None and address[1].endswith(f"/words_{found}.js") and address[1] in load_files()


async def test_the_root_redirects_to_the_page_with_its_query(app: App, session: aiohttp.ClientSession) -> None:
    for path, location in (("/", PAGE), ("/?token=a%20b&api=x", f"{PAGE}?token=a%20b&api=x")):
        found = await fetch(app, session, path)
        assert (found.status, found.headers["location"], found.body) == (302, location, b"")
    assert (await fetch(app, session, PAGE + "?token=abc")).status == 200


UNKNOWN = ("/dashboard", "/dashboard/nothing.js", "/dashboard/app.js", "/dashboard/vendor/")


async def test_no_other_path_is_public(app: App, session: aiohttp.ClientSession) -> None:
    for path in UNKNOWN:
        assert (await fetch(app, session, path)).status == 401, path
        assert (await fetch(app, session, path, Authorization=f"Bearer {MASTER}")).status == 404, path
    for method in ("POST", "DELETE", "PUT"):
        assert (await fetch(app, session, PAGE, method=method)).status == 401
        answer = await fetch(app, session, PAGE, method=method, Authorization=f"Bearer {MASTER}")
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert (await fetch(app, session, "/overview")).status == 401


async def test_a_hub_without_a_dashboard_has_no_path_of_it(session: aiohttp.ClientSession) -> None:
    async with open_app(toml="[dashboard]\nenabled = false", wait_until_ready=False) as app:
        for path in ("/", PAGE, *load_files()):
            assert (await fetch(app, session, path)).status == 401, path
            assert (await fetch(app, session, path, Authorization=f"Bearer {MASTER}")).status == 404, path


def test_the_configuration_disables_the_dashboard() -> None:
    assert config.parse("", "x", {}).dashboard.enabled
    assert not config.parse("[dashboard]\nenabled = false", "x", {}).dashboard.enabled


def test_a_changed_file_has_another_address() -> None:
    paths = [path for path in load_files() if path.endswith("/app.js")]
    assert len(paths) == 1
    page = load_files()[PAGE].body.decode()
    assert paths[0].removeprefix(PAGE) in page and "{{" not in page


def test_the_page_names_no_other_host() -> None:
    for path, file in load_files().items():
        if not path.endswith(".png"):
            named = set(re.findall(r"(?:https?|wss?)://[^\s\"'`)]*", file.body.decode()))
            assert named <= {"http://www.w3.org/2000/svg", *KNOWN}, (path, named)


KNOWN = {"http://www.w3.org/1998/Math/MathML", "http://www.w3.org/1999/xhtml"}
"""XML namespaces, which no browser requests."""


ENTITIES = Path(appliance.__file__).parent / "adapters" / "mqtt"

UNTRANSLATED = ("attribute.", "value.", "action.", "error.")
"""Names and messages of the hub that need no translation."""


@pytest.mark.slow
async def test_every_text_of_the_page_exists_in_every_language(app: App, session: aiohttp.ClientSession) -> None:
    scripts = {
        PurePosixPath(path).name: (await fetch(app, session, path)).body.decode()
        for path in load_files()
        if path.endswith(".js")
    }
    languages = {name: words(text) for name, text in scripts.items() if name.startswith("words_")}
    assert set(languages) == {f"words_{each}.js" for each in ("de", "en", "es", "fr", "it", "nl", "pl")}
    for name, text in scripts.items():
        for language, table in languages.items():
            for key in re.findall(r"\bt\(\s*\"([^\"]+)\"", text):
                assert key in table, f"{name} uses {key}, which {language} lacks"
            for prefix in re.findall(r"\bt\(\s*`([^$`]+)\$\{", text):
                assert any(key.startswith(prefix) for key in table), f"{name} uses {prefix}…, which {language} lacks"
    english, german = languages.pop("words_en.js"), languages["words_de.js"]
    assert not {key for key in english.keys() ^ german.keys() if not key.startswith(UNTRANSLATED)}
    names = {each for key in english.keys() ^ german.keys() if (each := key.rpartition(".")[2])}
    capabilities = {
        *CAPABILITIES,
        *(value for each in CAPABILITIES.values() for value in (*each.values, *each.actions)),
    }
    announced = {word for file in ENTITIES.rglob("*.py") for word in re.findall(r"\"(\w+)\"", file.read_text())}
    assert names <= capabilities | announced | CODES.keys() | {
        "not_found",
        *Status,
        *ExecutionStatus,
        *AdapterStatus,
        "presence",
        "state",
    }
    placeholders = re.compile(r"\{\w+\}")
    for language, table in languages.items():
        assert table.keys() == german.keys(), (language, table.keys() ^ german.keys())
        for key in english.keys() & table.keys():
            assert set(placeholders.findall(english[key])) == set(placeholders.findall(table[key])), (language, key)


MAX_COMPRESSED_BYTES = 60_000


def test_the_first_view_is_small_and_requested_at_once() -> None:
    files = {re.sub(r"^/dashboard/([0-9a-f]{16}/)?", "", path): file for path, file in load_files().items()}
    found, unread = set[str](), {"app.js", "connection.js"}
    while unread:
        found |= unread
        imports = [
            re.findall(r"^(?:import|\}) .*\"\./(.+)\";$", files[each].body.decode(), re.MULTILINE) for each in unread
        ]
        unread = {name for names in imports for name in names} - found
    page = files[""].body.decode()
    assert set(re.findall(r"modulepreload\" href=\"\w+/(.+?)\"", page)) == found
    sizes = {name: len(file.compressed or file.body) for name, file in files.items()}
    largest = max(size for name, size in sizes.items() if name.startswith("words_"))
    first = sum(sizes[each] for each in ("", "style.css", "icon.svg", *found))
    assert first + largest <= MAX_COMPRESSED_BYTES, (first, largest)
    for name, file in files.items():
        if name not in {"", "worker.js", "manifest.webmanifest"}:
            assert file.body == (FOLDER / name).read_bytes(), name


def words(text: str) -> dict[str, str]:
    """Parse a language file, and return its table."""
    table, section = {}, ""
    for line in text.split("`")[1].strip().splitlines():
        key, colon, value = line.partition(": ")
        if colon:
            table[section + key] = value
        else:
            section = key.strip("[]") + "."
    assert len(table) > 100
    return table


async def test_the_overview_equals_the_lists(app: App) -> None:
    overview = (await app.get("/overview")).json
    for part in ("rooms", "groups", "scenes", "automations", "adapters"):
        assert overview[part] == (await app.get(f"/{part}")).json, part
    ids = [device["id"] for device in overview["devices"]]
    assert ids == [device["id"] for device in (await app.get("/devices")).json]
    assert overview["caller"] == {"key_id": "master", "role": "admin"}


async def test_a_device_lists_its_automations(app: App, tmp_path: Path) -> None:
    assert (await app.get(f"/devices/{LIGHT}/uses")).json == {"device_id": LIGHT, "automations": [], "scenes": []}
    files = {
        "scenes/one.lua": f"return {{ id = 'one', name = 'One', execute = function(c) c:get_device('{LIGHT}') end }}",
        "scenes/other.lua": f'return {{ id = "other", name = "x{LIGHT}", execute = function(ctx) end }}',
        "automations/a.lua": f"""return {{ id = "a", name = "A", execute = function(ctx) end,
            trigger = {{ type = "device_state_change", device_id = "{LIGHT}" }} }}""",
    }
    for name, text in files.items():
        file = tmp_path / "config" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    async with open_app(root=tmp_path) as other:
        uses = (await other.get(f"/devices/{LIGHT}/uses")).json
        assert uses == {"device_id": LIGHT, "automations": ["a"], "scenes": ["one"]}
        assert (await other.get("/devices/nothing/uses")).status == 404


@pytest.mark.slow
async def test_the_backup_that_is_downloaded_can_be_restored(tmp_path: Path) -> None:
    process.configure(tmp_path)
    async with process.running(tmp_path) as hub:
        assert await hub.post("/rooms", id="attic", name="Attic") == 200
        async with hub.session.get(f"{hub.url}/diagnostics/backup") as answer:
            assert (answer.status, answer.headers["content-type"]) == (200, "application/x-tar")
            assert re.fullmatch(
                r"attachment; filename=\"lares-backup-\d{4}-\d\d-\d\d\.tar\"", answer.headers["content-disposition"]
            )
            packed = await answer.read()
        assert (await hub.get("/openapi.json"))["paths"]["/diagnostics/backup"]
        _, made = await hub.ask("POST", "/auth/keys", {"label": "w", "role": "write"})
        headers = {"Authorization": f"Bearer {made['key']}"}
        async with hub.session.get(f"{hub.url}/diagnostics/backup", headers=headers) as answer:
            assert answer.status == 403
        assert process.KEY not in (tmp_path / "hub.log").read_text()
    file = tmp_path / "backup"
    file.write_bytes(packed)
    with archive.opened(file) as found:
        assert found.values["room/attic"] == {"name": "Attic"}
    assert list(found.files) == [PurePosixPath("default.toml")]
