"""The fields of an announced configuration.

This reader is not that of `tables/`: others write these configurations, and a field that cannot be read costs that
field only, where a table of this hub's own configuration would be refused with every fault in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from appliance.adapters.mqtt.payloads import Message, is_filter, is_topic
from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed, ValueMissing

_YES = ("true", "yes", "on", "1")


MAX_QUICK_CHARS = 500
"""Characters of templates that are parsed in one step, in a few milliseconds at most."""

LOOK_CHARS = 1
"""How many such characters looking at one part of a configuration is worth."""


def preparing(config: Any) -> Iterator[None]:
    """Parse the templates of a configuration beforehand, in steps: making entities of it then takes no time."""
    waiting, unparsed = [config], 0
    while waiting:
        each = waiting.pop()
        unparsed += LOOK_CHARS
        if isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
        elif isinstance(each, str) and ("{{" in each or "{%" in each):
            with contextlib.suppress(TemplateFailed):
                Template(each)
            unparsed += len(each)
        if unparsed > MAX_QUICK_CHARS:
            unparsed = 0
            yield


class AnnouncedFields:
    """One configuration with full names. `problems` gathers what could not be read, a sentence each."""

    def __init__(self, raw: Mapping[str, Any], problems: list[str] | None = None) -> None:
        self.raw = raw
        self.problems: list[str] = [] if problems is None else problems

    def __contains__(self, key: str) -> bool:
        return self.raw.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        """The value as Python prints it: a JSON `false` is `False`, as in a rendered template."""
        value = self.raw.get(key)
        return default if value is None or isinstance(value, dict | list) else str(value)

    def number(self, key: str, default: float) -> float:
        """A number, or the text of one."""
        value = self.raw.get(key)
        try:
            found = float(value) if not isinstance(value, bool) and value is not None else default
        except (TypeError, ValueError, OverflowError):
            self._note(f"{key} is no number")
            return default
        return found if abs(found) < 1e15 else default

    def bounds(self, low_key: str, high_key: str, low: float, high: float) -> tuple[float, float]:
        """Two numbers, the first no larger than the second; where they are announced otherwise, as by default."""
        found = self.number(low_key, low), self.number(high_key, high)
        if found[0] <= found[1]:
            return found
        self._note(f"{low_key} is above {high_key}")
        return low, high

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean, or the text of one."""
        value = self.raw.get(key)
        if value is None:
            return default
        return value.strip().lower() in _YES if isinstance(value, str) else bool(value)

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts, or one text alone."""
        value = self.raw.get(key)
        if isinstance(value, str):
            return (value,)
        return tuple(str(each) for each in value[:500]) if isinstance(value, list) else default

    def topic(self, key: str) -> str | None:
        """A topic to subscribe to, maybe with wildcards; None where there is none or it is malformed."""
        return self._checked(key, is_filter)

    def target(self, key: str) -> str | None:
        """A topic to publish to; None where there is none or it is malformed."""
        return self._checked(key, is_topic)

    def template(self, *keys: str) -> Template | None:
        """The first of these templates that is there; one that cannot be read is a problem, and gives no value."""
        for key in keys:
            if isinstance(text := self.raw.get(key), Template):
                return text
            if isinstance(text, str) and text:
                try:
                    return Template(text)
                except TemplateFailed as fault:
                    self._note(f"{key} {fault}")
                    return _UNREADABLE
        return None

    def _checked(self, key: str, is_valid: Callable[[str], bool]) -> str | None:
        value = self.raw.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str) and is_valid(value):
            return value
        self._note(f"{key} is no topic")
        return None

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


class _UnreadableTemplate(Template):
    """Stands for a template that could not be read: it never gives a value."""

    def __init__(self) -> None:
        """Parse nothing."""

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """Raise `ValueMissing`."""
        raise ValueMissing("is a template that cannot be read")


_UNREADABLE = _UnreadableTemplate()


def is_unreadable(given: Template | None) -> bool:
    """Whether this stands for a template that could not be read."""
    return given is _UNREADABLE


class Availability:
    """The availability of one entity. Without topics it is always available; with topics not before a message."""

    def __init__(self, config: AnnouncedFields) -> None:
        self._entries = list(_entries(config))
        self._mode = config.text("availability_mode", "latest")
        self._reported: dict[int, bool] = {}
        self._latest = False

    @property
    def topics(self) -> list[str]:
        """The topics to subscribe to."""
        return [topic for topic, _, _ in self._entries]

    @property
    def is_available(self) -> bool:
        """Whether the entity is available, by the announced mode."""
        if not self._entries:
            return True
        if self._mode == "all":
            return len(self._reported) == len(self._entries) and all(self._reported.values())
        return any(self._reported.values()) if self._mode == "any" else self._latest

    def take(self, filter_: str, message: Message) -> None:
        """Process a message that came for a topic; raises `TemplateFailed`."""
        for number, (topic, given, words) in enumerate(self._entries):
            if topic == filter_ and (is_available := words.get(message.rendered(given))) is not None:
                self._reported[number] = self._latest = is_available


def _entries(config: AnnouncedFields) -> Iterator[tuple[str, Template | None, Mapping[str, bool]]]:
    """Each topic, the template of its messages, and what they say."""
    announced = config.raw.get("availability")
    listed = [AnnouncedFields(each, config.problems) for each in announced] if isinstance(announced, list) else []
    ways = [(each, "topic", "value_template") for each in listed]
    for fields, key, template_key in (*ways, (config, "availability_topic", "availability_template")):
        if topic := fields.topic(key):
            not_available = fields.text("payload_not_available", "offline")
            words = {not_available: False, fields.text("payload_available", "online"): True}
            yield topic, fields.template(template_key), words


_CONFIG = """
    atype=automation_type av_tones=available_tones avty=availability avty_mode=availability_mode b_tpl=blue_template
    bri_scl=brightness_scale clr_temp_k=color_temp_kelvin clrm=color_mode cmd_off_tpl=command_off_template
    cmd_on_tpl=command_on_template cmps=components cod_arm_req=code_arm_required cod_dis_req=code_disarm_required
    cod_form=code_format cod_trig_req=code_trigger_required cont_type=content_type def_ent_id=default_entity_id
    dev=device dev_cla=device_class dsp_prc=display_precision e=encoding en=enabled_by_default ent_cat=entity_category
    ent_pic=entity_picture evt_typ=event_types exp_aft=expire_after fanspd_lst=fan_speed_list flsh=flash
    flsh_tlng=flash_time_long flsh_tsht=flash_time_short frc_upd=force_update fx_list=effect_list g_tpl=green_template
    hum_state_tpl=target_humidity_state_template ic=icon img_e=image_encoding img_t=image_topic init=initial
    json_attr=json_attributes lrst_val_tpl=last_reset_value_template max_hum=max_humidity max_k=max_kelvin
    max_mirs=max_mireds migr_discvry=migrate_discovery min_hum=min_humidity min_k=min_kelvin min_mirs=min_mireds
    o=origin obj_id=object_id off_dly=off_delay on_cmd_type=on_command_type ops=options opt=optimistic p=platform
    pause_cmd_t=pause_command_topic pause_mw_cmd_tpl=pause_command_template pl=payload pos=reports_position
    pos_clsd=position_closed pos_open=position_open pr_modes=preset_modes ptrn=pattern r_tpl=red_template
    rel_s=release_summary rel_u=release_url ret=retain send_cmd_t=send_command_topic set_fan_spd_t=set_fan_speed_topic
    spd_rng_max=speed_range_max spd_rng_min=speed_range_min src_type=source_type stype=subtype
    sug_dsp_prc=suggested_display_precision sup_clrm=supported_color_modes sup_dur=support_duration
    sup_feat=supported_features sup_vol=support_volume_set swing_h_modes=swing_horizontal_modes t=topic
    temp_unit=temperature_unit tilt_clsd_val=tilt_closed_value tilt_opnd_val=tilt_opened_value
    tilt_opt=tilt_optimistic tit=title trns=transition uniq_id=unique_id unit_of_meas=unit_of_measurement
    val_tpl=value_template whit_cmd_t=white_command_topic whit_scl=white_scale
"""

_PAYLOADS = """
    arm_away=arm_away arm_custom_b=arm_custom_bypass arm_home=arm_home arm_nite=arm_night arm_vacation=arm_vacation
    avail=available cln_sp=clean_spot cls=close disarm=disarm home=home inst=install loc=locate lock=lock
    not_avail=not_available not_home=not_home off=off on=on open=open osc_off=oscillation_off osc_on=oscillation_on
    paus=pause prs=press ret=return_to_base rst=reset rst_hum=reset_humidity rst_mode=reset_mode
    rst_pct=reset_percentage rst_pr_mode=reset_preset_mode stop=stop stop_tilt=stop_tilt strt=start toff=turn_off
    ton=turn_on trig=trigger unlk=unlock
"""

_STATES = """
    cla=class closing=closing clsd=closed jam=jammed locked=locked locking=locking off=off on=on open=open
    opening=opening stopped=stopped unlocked=unlocked unlocking=unlocking
"""

_ENDS = {
    "t": "topic", "tpl": "template", "cmd_t": "command_topic", "cmd_tpl": "command_template", "stat_t": "state_topic",
    "stat_tpl": "state_template", "val_tpl": "value_template",
}  # fmt: skip

_PROPERTIES = {
    "t tpl": """
        act=action avty=availability cmd=command curr_hum=current_humidity curr_temp=current_temperature
        dock_cmd=dock_command json_attr=json_attributes pow_cmd=power_command set_pos=set_position pos=position
        strt_mw_cmd=start_mowing_command tilt_cmd=tilt_command tilt_status=tilt_status url=url l_ver=latest_version
    """,
    "cmd_t cmd_tpl stat_t val_tpl": """
        dir=direction hs=hs osc=oscillation pct=percentage pr_mode=preset_mode rgb=rgb rgbw=rgbw rgbww=rgbww xy=xy
    """,
    "cmd_t cmd_tpl stat_t stat_tpl": """
        fan_mode=fan_mode mode=mode swing_h_mode=swing_horizontal_mode swing_mode=swing_mode temp=temperature
        temp_hi=temperature_high temp_lo=temperature_low
    """,
    "cmd_t cmd_tpl stat_t tpl val_tpl": "bri=brightness clr_temp=color_temp fx=effect",
    "stat_t val_tpl": "act=activity clrm=color_mode",
    "cmd_t cmd_tpl stat_t": "hum=target_humidity",
    "t tpl val_tpl": "stat=state",
}
"""Properties that have keys with these ends, such as `bri_cmd_t` and `brightness_command_topic`."""

_DEVICE = """
    cns=connections cu=configuration_url ids=identifiers name=name mf=manufacturer mdl=model mdl_id=model_id
    hw=hw_version sw=sw_version sa=suggested_area sn=serial_number
"""

_ORIGIN = """
    name=name sw=sw_version url=support_url
"""


def _table(text: str) -> Mapping[str, str]:
    return dict(pair.split("=") for pair in text.split())


CONFIG_NAMES = {
    **_table(_CONFIG),
    **{f"pl_{short}": f"payload_{name}" for short, name in _table(_PAYLOADS).items()},
    **{f"stat_{short}": f"state_{name}" for short, name in _table(_STATES).items()},
    **{
        f"{short}_{end}": f"{name}_{_ENDS[end]}"
        for ends, properties in _PROPERTIES.items()
        for short, name in _table(properties).items()
        for end in ends.split()
    },
}
"""Of a configuration, a component and an entry of `availability`."""

DEVICE_NAMES = _table(_DEVICE)
"""Of `device`."""

ORIGIN_NAMES = _table(_ORIGIN)
"""Of `origin`."""


def expand_abbreviations(raw: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The object with full names; where both the short and the full one stand, the full one counts."""
    full = {names.get(key, key): value for key, value in raw.items()}
    return full | {key: value for key, value in raw.items() if key not in names}
