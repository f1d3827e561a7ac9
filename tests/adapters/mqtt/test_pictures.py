"""Still pictures of cameras and images: stored pictures, rejected pictures, and events."""

from __future__ import annotations

import asyncio
import base64
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.adapters.base import Picture
from appliance.adapters.mqtt.adapter import MqttAdapter
from appliance.adapters.mqtt.picture_store import MAX_PICTURES_BYTES
from appliance.adapters.mqtt.platforms.picture import MAX_PICTURE_BYTES
from appliance.event_loop import SHORT_TURN_SECS, loop_lag, run
from appliance.home.events import DeviceEvent, Event
from appliance.home.model import Device
from tests.adapters.mqtt.captures import Sent
from tests.adapters.mqtt.homes import PLAIN
from tests.adapters.mqtt.table import announce, config, message_loop, receive
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of

JPEG, PNG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00 and more", b"\x89PNG\r\n\x1a\n and more"
GIF, WEBP = b"GIF89a and more", b"RIFF\x10\x00\x00\x00WEBPVP8 and more"
LARGE = JPEG.ljust(MAX_PICTURE_BYTES, b"\0")


class Cameras:
    """The message loop of a broker, and the published events."""

    def __init__(self, clock: VirtualClock) -> None:
        self.events: list[tuple[str, str, Any]] = []
        self.loop = message_loop(clock)
        self.loop._publish._bus.listen(self._note, DeviceEvent)

    def _note(self, event: Event) -> None:
        assert isinstance(event, DeviceEvent)
        self.events.append((event.device_id, event.event, event.data))

    def announce(self, object_id: str, component: str = "camera", **keys: Any) -> None:
        """Announce a device with this id. If there are no keys, remove the device."""
        key = "topic" if component == "camera" else "image_topic"
        sent = config(f"{component}/{object_id}", **{key: f"{object_id}/still", "unique_id": object_id, **keys})
        announce(self.loop, sent if keys else Sent(sent.topic, b"", retain=True))

    def send(self, object_id: str, payload: bytes, *, retain: bool = False) -> None:
        receive(self.loop, f"{object_id}/still", payload, is_retained=retain)

    def device(self, object_id: str) -> Device:
        found = self.loop._publish.find(f"mqtt:{object_id}")
        assert found is not None
        return found

    def shown(self, object_id: str) -> dict[str, Any]:
        """Return the device's attributes without `state`."""
        return {key: value for key, value in self.device(object_id).attributes.items() if key != "state"}

    def picture(self, object_id: str, attribute: str | None = None) -> Picture | None:
        return self.loop.processor.pictures.find(f"mqtt:{object_id}", attribute)


@pytest.fixture
def cameras(clock: VirtualClock) -> Cameras:
    return Cameras(clock)


@pytest.mark.parametrize("component", ["camera", "image"])
@pytest.mark.parametrize("encoding", ["", "b64", "b64 in lines"])
@pytest.mark.parametrize(
    ("body", "media_type"), [(JPEG, "jpeg"), (PNG, "png"), (GIF, "gif"), (WEBP, "webp"), (LARGE, "jpeg")]
)
async def test_a_picture_is_recognized_by_its_bytes_and_its_type_is_the_attribute(
    cameras: Cameras, component: str, encoding: str, body: bytes, media_type: str
) -> None:
    cameras.announce("x", component, image_encoding=encoding[:3], content_type="text/html", device={"ids": ["x"]})
    assert (cameras.shown("x"), cameras.picture("x")) == ({}, None)
    coded = base64.encodebytes(body) if encoding.endswith("lines") else base64.b64encode(body)
    cameras.send("x", coded if encoding else body)
    assert cameras.shown("x") == {"custom.mqtt.x": f"image/{media_type}"}
    found = cameras.picture("x")
    assert found is not None and (found.body, found.media_type) == (body, f"image/{media_type}")
    assert cameras.device("x").info.device_class == component
    assert not cameras.loop.announced.refusals.by_key


@pytest.mark.parametrize(
    ("keys", "payload", "reason"),
    [
        ({}, b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is not a JPEG, PNG, GIF, or WebP picture"),
        ({}, b"RIFF\x10\x00\x00\x00WAVE", "is not a JPEG"),
        ({}, base64.b64encode(PNG), "is not a JPEG"),
        ({"image_encoding": "b64"}, PNG, "WebP picture in base64"),
        ({"image_encoding": "b64"}, b"?" * 99, "in base64"),
        ({}, LARGE + b"\0", "larger than 1 MiB"),
        ({"image_encoding": "b64"}, base64.encodebytes(LARGE + b"\0\0\0"), "larger than 1 MiB"),
    ],
    ids=range(7),
)
async def test_anything_but_a_picture_is_refused_once_and_the_last_picture_kept(
    cameras: Cameras, keys: dict[str, Any], payload: bytes, reason: str
) -> None:
    cameras.announce("x", **keys, name="Hall")
    good = base64.b64encode(JPEG) if keys else JPEG
    cameras.send("x", good)
    for _ in range(3):
        cameras.send("x", payload)
    found = cameras.picture("x")
    assert found is not None and found.body == JPEG
    [refusal] = cameras.loop.announced.refusals.by_key.values()
    assert (refusal.device_id, refusal.attribute) == ("mqtt:x", "custom.mqtt.x") and reason in refusal.reason


@pytest.mark.parametrize(
    ("component", "keys", "reason"),
    [
        ("image", {"image_topic": None, "url_topic": "x/url"}, "which the hub does not fetch"),
        ("image", {"image_topic": None, "url_topic": "x/url", "url_template": "{{ value }}"}, "does not fetch"),
        ("image", {"image_topic": None}, "the entity has no usable image_topic"),
        ("camera", {"topic": "x/#/y"}, "the entity has no usable topic: topic is not a topic"),
        ("camera", {"image_encoding": "hex"}, "image_encoding is 'hex'; only b64 is supported"),
    ],
)
async def test_an_announcement_without_a_picture_is_refused_with_the_reason(
    cameras: Cameras, component: str, keys: dict[str, Any], reason: str
) -> None:
    cameras.announce("x", component, name="Hall", **keys)
    [refusal] = cameras.loop.announced.refusals.by_key.values()
    assert reason in refusal.reason and not cameras.loop.announced.devices


async def test_another_picture_is_an_event_at_most_once_a_second(cameras: Cameras, clock: VirtualClock) -> None:
    cameras.announce("x", name="Hall")
    cameras.send("x", JPEG, retain=True)
    list(cameras.loop.processor.tick())
    assert not cameras.events and cameras.picture("x") is not None
    updated_at = cameras.device("x").updated_at
    event = ("mqtt:x", "picture", {"attribute": "custom.mqtt.x", "media_type": "image/jpeg"})
    for number in range(10):
        cameras.send("x", JPEG + bytes([number]))
        cameras.send("x", JPEG + bytes([number]))
        list(cameras.loop.processor.tick())
        await clock.advance(0.25, sleepers=0)
    assert cameras.events == [event] * 3
    cameras.send("x", JPEG + bytes([9]))
    await clock.advance(2, sleepers=0)
    list(cameras.loop.processor.tick())
    assert cameras.events == [event] * 4, "the last of ten pictures; a repeated picture causes no event"
    assert cameras.device("x").updated_at == updated_at


async def test_an_empty_message_or_the_end_of_the_announcement_removes_the_picture(cameras: Cameras) -> None:
    cameras.announce("x", name="Hall")
    for payload, shown in ((JPEG, {"custom.mqtt.x": "image/jpeg"}), (b"", {}), (PNG, {"custom.mqtt.x": "image/png"})):
        cameras.send("x", payload)
        assert (cameras.shown("x"), cameras.picture("x") is not None) == (shown, bool(shown))
    cameras.announce("x", name="Hall, again")
    assert cameras.shown("x") == {"custom.mqtt.x": "image/png"} and cameras.picture("x") is not None
    cameras.announce("x", topic="other/still")
    assert (cameras.shown("x"), cameras.picture("x")) == ({}, None)
    cameras.send("other", GIF)
    cameras.announce("x")
    assert cameras.picture("x") is None


async def test_a_device_can_have_several_pictures_by_attribute(cameras: Cameras) -> None:
    for object_id in ("front", "rear"):
        cameras.announce(object_id, device={"ids": ["car"]}, name=object_id)
    cameras.send("rear", PNG)
    assert cameras.picture("car") == cameras.picture("car", "custom.mqtt.rear")
    cameras.send("front", JPEG)
    bodies = [getattr(cameras.picture("car", each), "body", None)
              for each in (None, "custom.mqtt.front", "custom.mqtt.rear", "custom.mqtt.roof")]  # fmt: skip
    assert bodies == [JPEG, JPEG, PNG, None]


async def test_the_oldest_of_too_many_pictures_are_removed(cameras: Cameras) -> None:
    names = [f"n{number:02}" for number in range(MAX_PICTURES_BYTES // len(LARGE) + 1)]
    for object_id in names:
        cameras.announce(object_id, name=object_id)
        cameras.send(object_id, LARGE)
    assert [each for each in names if cameras.picture(each) is not None] == names[1:]
    cameras.send(names[1], LARGE)
    cameras.send(names[0], LARGE)
    assert [each for each in names if cameras.picture(each) is not None] == [*names[:2], *names[3:]]


async def test_base64_that_is_cut_off_is_refused_and_reported(cameras: Cameras) -> None:
    cameras.announce("x", image_encoding="b64")
    cameras.send("x", base64.b64encode(JPEG)[:-3])
    assert cameras.shown("x") == {"custom.mqtt.x": "image/jpeg"} and cameras.picture("x") is None


async def test_a_restart_restores_no_picture(cameras: Cameras, clock: VirtualClock) -> None:
    cameras.announce("x", name="Hall")
    cameras.send("x", JPEG)
    after = message_loop(clock, publish=cameras.loop._publish)
    after.processor.restored.remember()
    announce(after, config("camera/x", topic="x/still", unique_id="x"))
    assert after.announced.devices["mqtt:x"].attributes == {}


def test_pictures_for_several_clients_are_decoded_in_separate_turns(clock: VirtualClock) -> None:
    turns: list[int] = []

    def find(*_: object) -> None:
        turns.append(loop_lag().turns)
        time.sleep(2 * SHORT_TURN_SECS)  # decodes a large picture

    async def request_all() -> None:
        adapter = MqttAdapter(context_of("mqtt", None, clock), PLAIN)
        processor = SimpleNamespace(pictures=SimpleNamespace(find=find))
        adapter.message_loop = cast("Any", SimpleNamespace(processor=processor))
        await asyncio.gather(*(adapter.picture("mqtt:x") for _ in range(4)))

    run(request_all())
    assert len({*turns}) == 4
