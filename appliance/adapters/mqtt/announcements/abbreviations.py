"""Abbreviated keys in discovery payloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
"""The abbreviations of these properties are combined with each ending. For example, `bri_cmd_t` means
`brightness_command_topic`."""

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
"""Full names by abbreviation, in a configuration, a component, and an `availability` entry."""

DEVICE_NAMES = _table(_DEVICE)
"""Full names by abbreviation, in `device`."""

ORIGIN_NAMES = _table(_ORIGIN)
"""Full names by abbreviation, in `origin`."""


def expand_abbreviations(raw: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the object with full names. If a key is present both abbreviated and in full, the full name wins."""
    full = {names.get(key, key): value for key, value in raw.items()}
    return full | {key: value for key, value in raw.items() if key not in names}
