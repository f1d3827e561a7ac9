-- Fan: runs while the air is humid.

--- @field sensor device humidity: the sensor
local sensor = "mqtt:zigbee2mqtt_0x00158d00067a8b9c"
--- @field fan device power: the fan, or the plug of the fan
local fan = "mqtt:tasmota_a4cf12b3c4d5"
--- @field on_above number 1..99 %: the humidity above which the fan runs
local on_above = 65
--- @field off_below number 1..99 %: the humidity below which it stops
local off_below = 55
--- @rule off_below < on_above: otherwise, the fan would switch on and off again

---@type Automation
return {
  id = "fan_by_humidity",
  name = "Fan by humidity",
  description = "Runs a fan while the air is humid.",
  triggers = {
    { id = "humid", type = "device_state_change", device_id = sensor, attribute = "humidity", above = on_above },
    { id = "dry", type = "device_state_change", device_id = sensor, attribute = "humidity", below = off_below },
  },
  mode = "queued",
  execute = function(ctx, event)
    ctx:command(fan, { capability = "power", action = event.trigger_id == "humid" and "on" or "off" })
  end,
}
