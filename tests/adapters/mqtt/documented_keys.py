"""The keys that Home Assistant documents for each component of its MQTT discovery (2026.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_EVERYWHERE = """
    name unique_id object_id default_entity_id device origin platform migrate_discovery qos encoding icon
    entity_category entity_picture enabled_by_default availability availability_mode availability_topic
    availability_template payload_available payload_not_available json_attributes_topic json_attributes_template
    group
"""
_COMPONENTS = """
alarm_control_panel: code code_{arm,disarm,trigger}_required command_{template,topic} retain state_topic
    value_template payload_{arm_away,arm_home,arm_night,arm_vacation,arm_custom_bypass,disarm,trigger}
    supported_features
binary_sensor: device_class expire_after force_update off_delay payload_{on,off} state_topic value_template
button: command_{template,topic} device_class payload_press retain
camera: topic image_encoding
climate: action_{template,topic} current_{humidity,temperature}_{template,topic} fan_modes initial
    max_{humidity,temp} {fan_mode,mode,swing_mode,swing_horizontal_mode}_{command,state}_{template,topic}
    min_{humidity,temp} modes optimistic payload_{on,off} power_command_{template,topic} precision
    preset_mode_command_{template,topic} preset_mode_state_topic preset_mode_value_template preset_modes swing_modes
    swing_horizontal_modes temp_step temperature_unit value_template
    {target_humidity,temperature,temperature_high,temperature_low}_{command,state}_{template,topic} retain
cover: command_topic device_class optimistic payload_{open,close,stop,stop_tilt}
    position_{open,closed,template,topic} set_position_{template,topic}
    state_{open,opening,closed,closing,stopped,topic} tilt_{min,max,optimistic} tilt_{opened,closed}_value
    tilt_{command,status}_{template,topic} value_template retain
date: command_{template,topic} optimistic state_topic value_template retain
datetime: command_{template,topic} optimistic state_topic timezone value_template retain
device_automation: automation_type type subtype payload topic value_template
device_tracker: json_attributes_{template,topic} payload_{home,not_home,reset} source_type state_topic value_template
event: device_class event_types state_topic value_template
fan: command_{template,topic} {direction,oscillation,percentage,preset_mode}_command_{template,topic} optimistic
    {direction,oscillation,percentage,preset_mode}_{state_topic,value_template} payload_{on,off} preset_modes
    payload_oscillation_{on,off} payload_reset_{percentage,preset_mode} speed_range_{min,max} state_topic
    state_value_template retain
humidifier: action_{template,topic} command_{template,topic} current_humidity_{template,topic} device_class modes
    {min,max}_humidity {mode,target_humidity}_{command,state}_{template,topic} optimistic payload_{on,off}
    payload_reset_{humidity,mode} state_topic state_value_template retain
image: content_type image_encoding image_topic url_template url_topic
lawn_mower: activity_{state_topic,value_template} {dock,pause,start_mowing}_command_{template,topic} optimistic
    retain
light: schema brightness brightness_{command_template,command_topic,scale,state_topic,template,value_template}
    {red,green,blue}_template color_mode_{state_topic,value_template} color_temp_{kelvin,template} command_topic
    color_temp_{command_template,command_topic,state_topic,value_template} command_{on,off}_template effect
    effect_list effect_{command_template,command_topic,state_topic,template,value_template} flash
    flash_time_{short,long} {hs,rgb,rgbw,rgbww,xy}_{command_template,command_topic,state_topic,value_template}
    {min,max}_{kelvin,mireds} on_command_type optimistic payload_{on,off} state_{template,topic,value_template}
    supported_color_modes transition value_template white_{command_topic,scale} retain
lock: code_format command_{template,topic} optimistic payload_{lock,unlock,open,reset} retain value_template
    state_{locked,unlocked,jammed,locking,unlocking,open,opening,topic}
notify: command_{template,topic} retain
number: command_{template,topic} device_class min max mode optimistic payload_reset state_topic step
    unit_of_measurement value_template retain
scene: command_topic payload_on retain
select: command_{template,topic} optimistic options state_topic value_template retain
sensor: device_class expire_after force_update last_reset_value_template options state_class state_topic
    suggested_display_precision unit_of_measurement value_template
siren: available_tones command_{template,topic,off_template} optimistic payload_{on,off} state_{on,off,topic}
    state_value_template support_{duration,volume_set} retain
switch: command_{template,topic} device_class optimistic payload_{on,off} state_{on,off,topic} value_template retain
tag: topic value_template
text: command_{template,topic} min max mode pattern state_topic value_template retain
time: command_{template,topic} optimistic state_topic value_template retain
update: command_topic device_class display_precision latest_version_{template,topic} payload_install release_summary
    release_url state_topic title value_template retain
vacuum: clean_segments_command_{template,topic} command_topic fan_speed_list
    payload_{clean_spot,locate,pause,return_to_base,start,stop} send_command_topic
    set_fan_speed_topic state_topic supported_features retain
valve: command_{template,topic} device_class optimistic payload_{open,close,stop} position_{open,closed}
    reports_position state_{open,opening,closed,closing,topic} value_template retain
water_heater: current_temperature_{template,topic} initial {min,max}_temp
    {mode,temperature}_{command,state}_{template,topic} modes optimistic payload_{on,off}
    power_command_{template,topic} precision temperature_unit value_template retain
"""


def expanded(words: str) -> Iterator[str]:
    """Expand every choice in braces."""
    for word in words.split():
        if (found := re.search(r"\{([^}]*)\}", word)) is None:
            yield word
        else:
            for choice in found[1].split(","):
                yield from expanded(word[: found.start()] + choice + word[found.end() :])


DOCUMENTED: dict[str, frozenset[str]] = {
    component: frozenset(expanded(keys))
    for component, keys in re.findall(r"(\w+): ((?:[^:]|\n)*)(?=\n\w+:|\n*\Z)", _COMPONENTS)
}
"""Keys of each component, not including the common keys."""

EVERYWHERE = frozenset(_EVERYWHERE.split())
"""Keys of all components."""
