---@meta
-- What the modules in `config/scripts/` take, for editors; `lares.lua` says what Lares itself gives. Never run.

---What `lights.on` sets beside switching on; what is left out stays as it is.
---@class LightOptions
---@field brightness? Percentage How bright, within what the light takes.
---@field kelvin? integer How warm, within what the light takes; a light without colour temperature ignores it.

---Where `lights.fade` leads, and how fast.
---@class FadeOptions
---@field to Percentage How bright it is in the end; 0 switches it off.
---@field secs number How long it takes.
---@field steps? integer In how many steps; one a second, at most 60, when left out.
---@field kelvin? integer How warm, from the beginning.
