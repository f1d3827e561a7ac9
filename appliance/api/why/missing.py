"""Explains an adapter, or an automation, scene, or device that is missing."""

from __future__ import annotations

from appliance.api.why.adapter import describe_adapter, list_dropped
from appliance.api.why.explanation import HOW_TO_LOAD, Explanation, list_safe_mode
from appliance.hub import Hub


async def explain_missing(hub: Hub, word: str) -> Explanation | None:
    """Return the state of the adapter with this name, or the reason why the automation, scene, or device with this id
    is missing. Return None if the reason is unknown."""
    for kind, catalog in (("automation", hub.automations.catalog), ("scene", hub.scenes.catalog)):
        if faults := await catalog.find_unloaded(word):
            sentences = [f"it is not loaded: {fault}" for fault in faults]
            return Explanation(kind=kind, id=word, summary=[*list_safe_mode(hub), *sentences, HOW_TO_LOAD])
    return await _explain_device_or_adapter(hub, word)


async def _explain_device_or_adapter(hub: Hub, word: str) -> Explanation | None:
    past = hub.names.list_removed()
    named = (id_ for id_, each in past.items() if each.name.casefold() == word.casefold())
    id_ = next(named, hub.registry.id_of(word))
    removed = [f"it {past[id_]}"] if id_ in past else []
    section = id_.partition(":")[0]
    kind = "adapter" if id_ == section else "device"
    health = next((each for each in hub.health.list_adapters() if each.name == section), None)
    if health is None:
        if section in (await hub.names.find_known()).adapters:
            off = f"[adapters.{section}] has enabled = false; set it to true, then run `lares reload`"
            return Explanation(kind=kind, id=word, summary=[*removed, off])
        return Explanation(kind="device", id=id_, summary=removed) if removed else None
    sentences = [*describe_adapter(health, id_)]
    if kind == "adapter":
        return Explanation(kind=kind, id=word, summary=sentences)
    if hub.registry.layout.keeps(id_):
        kept = f"{section} does not report the device now; the device's room, name, and groups are kept"
        sentences = [kept, *removed, *sentences]
    elif removed or health.file_fault is not None or list_dropped(health, id_):
        sentences = [*removed, *sentences]
    else:
        return None
    return Explanation(kind=kind, id=id_, summary=sentences)
