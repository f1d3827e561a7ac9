-- Garage left open: sends a message at night when the garage is open, with a button that closes it.
--
-- For the button, run `lares key create --label garage --role hook --hook garage_left_open`. Add the key to `hook_keys` in
-- the section of your phone, with `hub_url` (docs/notify.md).

--- @field garage device garage_door|door|contact: the garage door, or its sensor
local garage = "mqtt:esphome_garage"
--- @field time time: when it should be closed
local time = "22:00"
--- @field again duration: how long until the next message
local again = 1800

local function is_open(device)
  local shown = device and device.attributes or {}
  return shown.garage_door == "open" or shown.door == "open" or shown.contact == "open"
end

local function close(ctx, device)
  for _, spec in ipairs(device.commands) do
    if spec.capability == "garage_door" or spec.capability == "door" then
      ctx:command(device.id, { capability = spec.capability, action = "close" })
      return
    end
  end
  ctx:log("warn", "the garage cannot be closed from here", { device = device.id })
end

---@type Automation
return {
  id = "garage_left_open",
  name = "Garage left open",
  description = "Sends a message at night while the garage is open.",
  triggers = {
    { id = "night", type = "wall_clock", time = time },
    { id = "again", type = "timer", name = "garage_left_open" },
    { id = "close", type = "webhook", hook = "garage_left_open" },
  },
  mode = "queued",
  execute = function(ctx, event)
    local device = ctx:get_device(garage)
    if not device or not is_open(device) then
      ctx:cancel_timer("garage_left_open")
    elseif event.trigger_id == "close" then
      close(ctx, device)
    else
      ctx:notify(device.name .. " is open", {
        title = "Garage",
        actions = { { label = "Close", hook = "garage_left_open" } },
      })
      ctx:start_timer("garage_left_open", again)
    end
  end,
}
