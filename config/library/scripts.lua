---@meta
-- The arguments of the modules in `config/scripts/`, for editors; `lares.lua` describes Lares itself. Never run.

---Further settings of `lights.on`; omitted ones stay unchanged.
---@class LightOptions
---@field brightness? Percentage The brightness, within the light's range.
---@field kelvin? integer The colour temperature, within the light's range; other lights ignore it.

---The end of `lights.fade`, and its speed.
---@class FadeOptions
---@field to Percentage The brightness at the end; 0 switches it off.
---@field secs number The duration.
---@field steps? integer The number of steps; by default one per second, at most 60.
---@field kelvin? integer The colour temperature from the beginning.
