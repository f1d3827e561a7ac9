"""The files of the home: list, read, check, save, and delete them, and list their previous versions."""

from __future__ import annotations

from appliance.api.error_responses import error_body
from appliance.api.limits import MAX_FILE_BODY_BYTES
from appliance.api.responses import encode_list, json_response
from appliance.api.roles import Role
from appliance.api.route import ApiParts, ApiResource, Call, route
from appliance.api.schemas import FILE_FAULT, SAVED_FILE
from appliance.api.validation import body_check, nullable, text
from appliance.errors import Invalid, NotFound
from appliance.tables.fields import Field
from appliance.tables.json_schema import COUNT, INSTANT, TEXT, array_of, one_of, record
from appliance.tasks import SharedRun, Tasks

_KINDS = ("scene", "automation", "script", "adapter", "config")

FILE = record("File", path=TEXT, kind=one_of(*_KINDS), size=COUNT, modified_at=INSTANT, version=TEXT)
FILES = record("Files", files=array_of(FILE))
FILE_TEXT = record("FileText", path=TEXT, text=TEXT, version=TEXT)
FILE_VERSION = record("FileVersion", n=COUNT, saved_at=INSTANT, size=COUNT)
FILE_VERSIONS = record("FileVersions", versions=array_of(FILE_VERSION))
FILE_VERSION_TEXT = record("FileVersionText", path=TEXT, n=COUNT, text=TEXT)
CHECKED_FILE = record("CheckedFile", errors=array_of(FILE_FAULT), warnings=array_of(FILE_FAULT))


SAVE_BODY = body_check("SaveRequest", {"text": Field(text), "version": Field(nullable(text), required=False)})
CHECK_BODY = body_check("FileCheckRequest", {"path": Field(text), "text": Field(text)})


NOT_DELETED = "the configuration cannot be deleted"


class FilesApi(ApiResource):
    """Handlers of the routes under `/files`. Clients that request the list at the same time share one computation."""

    needs_files = True

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._all = SharedRun(self._encode_all, Tasks(), "list of files")

    @route("GET", "/files", Role.ADMIN, FILES)
    async def list_all(self, call: Call) -> object:
        """Return the Lua files of scenes, automations, scripts, and adapters, and the configuration, by path."""
        return await self._all.result()

    @route("POST", "/files/check", Role.ADMIN, CHECKED_FILE, body=CHECK_BODY, max_body_bytes=MAX_FILE_BODY_BYTES)
    async def check(self, call: Call) -> object:
        """Check a new text for a file in the current home, without writing it."""
        stated = await call.read_body()
        return await self.hub.files.check(stated["path"], stated["text"])

    @route("GET", "/files/<file_path>", Role.ADMIN, FILE_TEXT, statuses=(200, 400, 404))
    async def get(self, call: Call, file_path: str) -> object:
        """Return the text of a file. Secrets of the configuration are `***`."""
        return await self.hub.files.read(file_path)

    @route(
        "PUT",
        "/files/<file_path>",
        Role.ADMIN,
        SAVED_FILE,
        statuses=(200, 409, 503),
        body=SAVE_BODY,
        max_body_bytes=MAX_FILE_BODY_BYTES,
    )
    async def put(self, call: Call, file_path: str) -> object:
        """Check and save the text. The previous text becomes a version. An empty `version` means a new file."""
        stated = await call.read_body()
        return await self.hub.files.save(file_path, stated["text"], stated["version"])

    @route("DELETE", "/files/<file_path>", Role.ADMIN, statuses=(204, 405, 503))
    async def remove(self, call: Call, file_path: str) -> object:
        """Delete the file. Keep its versions, and make its last text a version. The configuration returns 405."""
        if file_path == self.hub.files.locations.config_path:
            return json_response(error_body(NOT_DELETED, "method_not_allowed"), 405, {"Allow": "GET, HEAD, PUT"})
        try:
            await self.hub.files.delete(file_path)
        except Invalid:
            raise NotFound("file", file_path) from None
        return None

    @route("GET", "/files/<file_path>/versions", Role.ADMIN, FILE_VERSIONS)
    async def list_versions(self, call: Call, file_path: str) -> object:
        """Return the previous texts of a file, newest first, even if the file was deleted."""
        return {"versions": await self.hub.files.list_versions(file_path)}

    @route("GET", "/files/<file_path>/versions/<n>", Role.ADMIN, FILE_VERSION_TEXT)
    async def get_version(self, call: Call, file_path: str, n: str) -> object:
        """Return one previous text of a file."""
        if not (n.isascii() and n.isdecimal() and len(n) < 10):
            raise NotFound("version", f"{file_path} {n}")
        return {"path": file_path, "n": int(n), "text": await self.hub.files.read_version(file_path, int(n))}

    async def _encode_all(self) -> bytes:
        entries = await self.hub.files.list_files()
        return b'{"files":%b}' % await encode_list(self.hub.clock, FILE, entries)
