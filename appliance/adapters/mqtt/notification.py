"""Messages for devices that display them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.adapters.notification import Notification
from appliance.errors import BadAnswer, Invalid
from appliance.home.values import Value
from appliance.tables.checks import format_value


def shown_messages(
    payload: Mapping[str, Value], devices: Iterable[MqttDevice], at: datetime
) -> list[tuple[str, Outgoing]]:
    """Return a device's id and message for each entity that displays `{message, title?, device_id?}`.

    Without `device_id`, all devices that display messages are included. `at` is the current time in the home's zone,
    for their templates. Raise `Invalid` if no device displays messages, and `BadAnswer` if a template fails.
    """
    text, device_id = Notification.parse(payload).text, payload.get("device_id")
    found: list[tuple[str, Outgoing]] = []
    for device in devices:
        for entity in (entity for entity in device.entities if device_id in (None, device.id)):
            if entity.announcement.component == "notify" and entity.offers:
                entity.written_at = at
                try:
                    found.append((device.id, entity.publish("command", text)))
                except TemplateFailed as fault:
                    raise BadAnswer(f"the template for messages of {device.id} {fault}") from None
    if not found and device_id is not None:
        raise Invalid(f"device_id must be the id of a device that shows messages, not {format_value(device_id)}")
    if not found:
        raise Invalid("no device of this broker shows messages")
    return found
