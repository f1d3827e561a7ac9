"""The units of capabilities, and the possible numbers."""

from __future__ import annotations

import pytest

from appliance.home.capabilities import CAPABILITIES
from appliance.home.units import RANGES, measure_fault, unusual_unit


def measured(value: float, unit: str) -> dict[str, object]:
    return {"value": value, "unit": unit}


def test_every_measurement_has_a_table_of_units_that_begins_with_its_usual_unit() -> None:
    for each in CAPABILITIES.values():
        if each.type in ("measurement", "accumulation"):
            assert each.unit is not None and next(iter(RANGES[each.unit])) == each.unit
            for unit, (low, high) in RANGES[each.unit].items():
                assert measure_fault(each.key, measured(max(low, -1), unit)) is None
                assert measure_fault(each.key, measured(min(high, 1), unit)) is None


@pytest.mark.parametrize(
    ("attribute", "value", "fault"),
    [
        ("temperature", measured(-274, "°C"), "must be from -273.15 to 2000 °C, not -274"),
        ("temperature", measured(-1, "K"), "must be from 0 to 2273 K, not -1"),
        ("humidity", measured(101, "%"), "must be from 0 to 100 %, not 101"),
        ("cloud_coverage", -1, "must be from 0 to 100 %, not -1"),
        ("illuminance", -1, "must be at least 0 lx, not -1"),
        ("power_consumption", measured(1, "kwh"), "not a unit of power_consumption; use one of W, kW"),
        ("energy_total", measured(1, "W") | {"period": "total"}, "has the unit 'W'"),
    ],
)
def test_impossible_values_are_explained(attribute: str, value: object, fault: str) -> None:
    assert fault in str(measure_fault(attribute, value))


def test_a_unit_is_unusual_unless_it_is_the_usual_unit_in_other_words() -> None:
    assert unusual_unit("power_consumption", measured(1, "kW")) == "kW"
    assert unusual_unit("temperature", measured(70, "fahrenheit")) == "fahrenheit"
    for attribute, value in (("temperature", measured(1, "celsius")), ("brightness", 5), ("power", "on"),
                             ("custom.a.b", measured(1, "x")), ("temperature", None)):  # fmt: skip
        assert unusual_unit(attribute, value) is None
