"""TLS contexts: concurrent uses of the same certificates share one context."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

from appliance.adapters.tls import share_tls

CERTIFICATE = Path(__file__).parents[1] / "fixtures" / "tls" / "cert.pem"


async def test_concurrent_uses_share_a_context_that_is_then_freed(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pem"
    copy.write_text(CERTIFICATE.read_text())
    contexts = await asyncio.gather(*map(share_tls, (CERTIFICATE, copy, None, None, None)))
    assert [contexts.index(each) for each in contexts] == [0, 0, 2, 2, 2]
    uses = [weakref.ref(each) for each in contexts]
    del contexts[2:]
    await share_tls(CERTIFICATE)
    gc.collect()
    assert [each() is None for each in uses] == [False, False, True, True, True]
