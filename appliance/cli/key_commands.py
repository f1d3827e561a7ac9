"""What `lares key` asks for, done on a store that is locked for it, or by the running hub."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from appliance.api import schemas
from appliance.api.keyring import Keyring
from appliance.api.routes.keys import KEY_BODY
from appliance.api.validation import body
from appliance.cli.first_key import first_key
from appliance.errors import Invalid, LaresError, NotFound, StoreFailed
from appliance.home.texts import identifier
from appliance.settings import Auth
from appliance.tables.fields import Field

REVOKE = body("RevokeRequest", {"id": Field(identifier)})

Action = Callable[[Any], Awaitable[dict[str, Any]]]
"""What is done for a request, and answered."""

_EXIT_CODES: Mapping[type[LaresError], int] = {
    Invalid: os.EX_USAGE,
    NotFound: os.EX_NOUSER,
    StoreFailed: os.EX_IOERR,
}
"""What a command that failed exits with."""


class KeyCommands:
    """Takes a request, an object with `do` and what that needs, and says what came of it.

    `more` are what the hub beside the keys answers, by the name that `do` has.
    """

    def __init__(
        self, keyring: Keyring, auth: Auth, data_dir: Path, more: Mapping[str, Action] | None = None
    ) -> None:
        self._keyring = keyring
        self._auth = auth
        self._data_dir = data_dir
        self._actions: Mapping[str, Action] = {
            "create": self._create,
            "list": self._list,
            "revoke": self._revoke,
            "reset-master": self._reset_master,
            **(more or {}),
        }

    async def answer(self, request: Any) -> dict[str, Any]:
        """What was asked for, or `error`, a sentence, and `code`, the exit code."""
        try:
            if not isinstance(request, dict) or (act := self._actions.get(str(request.get("do")))) is None:
                raise Invalid(f"a request must be an object whose do is one of {', '.join(self._actions)}")
            return await act(request)
        except LaresError as error:
            return {"error": str(error), "code": _exit_code(error)}

    async def _create(self, request: Any) -> dict[str, Any]:
        fields = KEY_BODY(request)
        key, token = await self._keyring.create(fields["label"], fields["role"])
        return {"key": schemas.KEY(key), "secret": token}

    async def _list(self, request: Any) -> dict[str, Any]:
        return {"keys": schemas.KEY.each(self._keyring.list_all())}

    async def _revoke(self, request: Any) -> dict[str, Any]:
        key_id = REVOKE(request)["id"]
        await self._keyring.revoke(key_id)
        return {"revoked": key_id}

    async def _reset_master(self, request: Any) -> dict[str, Any]:
        if self._auth.master_key is not None:
            raise Invalid(f"the master key is the one of {self._auth.source}: change it there; nothing was changed")
        token = await self._keyring.reset_master()
        with contextlib.suppress(OSError):  # the key in it is not valid any more
            first_key(self._data_dir).unlink()
        return {"secret": token}


def _exit_code(error: LaresError) -> int:
    kinds = type(error).__mro__
    return next((code for kind, code in _EXIT_CODES.items() if kind in kinds), os.EX_SOFTWARE)
