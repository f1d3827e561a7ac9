---@meta
-- Types for the Lua files of a home, for editors: completion, explanations, and warnings about typos.
-- This file never runs, and you need not change it.
--
-- Write `---@type Scene` or `---@type Automation` above the `return {` of a file, so that the editor knows every field of
-- the file, and the types of `ctx` and `event`.

-- Definitions -----------------------------------------------------------------------------------------------------

---A file in `config/scenes/` returns a scene, which people start.
---@class Scene
---@field id string The scene's name in URLs, unique among scenes.
---@field name string The name for people.
---@field description? string A sentence for people.
---@field mode? Mode The effect of a start while the scene runs; "parallel" by default.
---@field execute fun(ctx: Context) The actions of the scene.

---A file in `config/automations/` returns an automation, which the home starts.
---@class Automation
---@field id string The automation's name in URLs, unique among automations.
---@field name string The name for people.
---@field description? string A sentence for people.
---@field trigger? Trigger The event that starts it.
---@field triggers? Trigger[] Several triggers, instead of trigger.
---@field conditions? Condition[] Conditions that must all hold when the trigger fires.
---@field state? State When it can run again.
---@field mode? Mode The effect of a trigger while the automation runs; "parallel" by default.
---@field enabled? boolean false: the automation is off until you switch it on. Your switch overrides the file.
---@field execute fun(ctx: Context, event: Event) The actions of the automation.

---@alias ModeType
---| "parallel" # up to max at once (by default automations.runner.default_max_concurrent); drops further ones
---| "single"   # one at a time; drops further ones
---| "queued"   # one at a time; up to max wait; drops further ones
---| "restart"  # a new execution ends the running one, after its sleep

---A name, or a table with another max: `mode = { type = "queued", max = 3 }`.
---@alias Mode ModeType|ModeTable

---@class ModeTable
---@field type ModeType
---@field max? integer At least 1; only "parallel" and "queued" accept it.

---When an automation can run again.
---@class State
---@field cooldown_secs? number Seconds after a successful run until it can run again.
---@field dedupe_window_secs? number Seconds until the same event can start it again.
---@field resumable_schedule? boolean An interval continues after a restart; no time of day fires twice.

-- Triggers --------------------------------------------------------------------------------------------------------

---@alias Trigger DeviceStateChange|WeatherState|DeviceEvent|VariableChange|Timer|Webhook|AdapterLifecycle|SystemError|WallClock|Date|Cron|Sunrise|Sunset|Interval

---@alias Day "mon"|"tue"|"wed"|"thu"|"fri"|"sat"|"sun"

---The state of a device changes.
---@class DeviceStateChange
---@field type "device_state_change"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field device_id? string|string[] The device's id or alias, such as "elgato_lights:light:0", or a list. "*": every device with the attribute.
---@field room_id? string The present devices of this room, instead of device_id.
---@field group_id? string The present devices of this group, instead of device_id.
---@field attribute? Capability|string The attribute. Without it, any change fires, and no comparison is possible.
---@field equals? AttributeValue Fires when the attribute becomes this value.
---@field above? number Fires when the number rises above this. With `below`, fires when it enters the range.
---@field below? number Fires when the number falls below this.
---@field debounce_secs? number Fires after the value has not changed for these seconds.
---@field duration_secs? number Fires after the value has matched for these seconds. Not with debounce_secs.
---@field at_start? boolean true: also fires for a change while the hub was off, and for a first value. Alarms always do.

---Like "device_state_change", for a weather device.
---@class WeatherState
---@field type "weather_state"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field device_id? string|string[] The device's id or alias, or a list.
---@field room_id? string The present devices of this room, instead of device_id.
---@field group_id? string The present devices of this group, instead of device_id.
---@field attribute Capability|string The attribute.
---@field equals? AttributeValue Fires when the attribute becomes this value.
---@field above? number Fires when the number rises above this.
---@field below? number Fires when the number falls below this.
---@field debounce_secs? number Fires after the value has not changed for these seconds.
---@field duration_secs? number Fires after the value has matched for these seconds.
---@field at_start? boolean true: also fires for a change while the hub was off, and for a first value.

---A device reports an event that is not a state: a press, a ring.
---@class DeviceEvent
---@field type "device_event"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field device_id? string|string[] The device's id or alias, or a list.
---@field room_id? string The present devices of this room, instead of device_id.
---@field group_id? string The present devices of this group, instead of device_id.
---@field event? string Only this event: "single", "double", "long". Without it: any.

---A variable changes, by ctx:set, on the page, or by a program. Without a comparison, its removal fires too; then
---the event has no value.
---@class VariableChange
---@field type "variable_change"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field name string The name of the variable.
---@field equals? any Fires when the variable becomes this value.
---@field above? number Fires when the number rises above this. With `below`, fires when it enters the range.
---@field below? number Fires when the number falls below this.

---A timer of ctx:start_timer ends. If it ended while the hub was off, the trigger fires after the start.
---@class Timer
---@field type "timer"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field name string The name of the timer.

---A phone, a button, a script, or a device calls /hooks/ID. `lares key create --label NAME --role hook --hook ID` makes a key.
---@class Webhook
---@field type "webhook"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field hook string The id of the hook.

---An adapter has started.
---@class AdapterLifecycle
---@field type "adapter_lifecycle"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field adapter? string The name of its section in default.toml. Without it, any adapter.
---@field event? "started"

---An error in the hub or at a device.
---@class SystemError
---@field type "system_error"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field contains? string The message must contain this text.

---Once a day, at the home's local time (locale.timezone).
---@class WallClock
---@field type "wall_clock"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field time? string "HH:MM"; or hour and minute.
---@field hour? integer 0 to 23.
---@field minute? integer 0 to 59.
---@field weekdays? Day[] Only on these days: { "sat", "sun" }.

---On a day of every year, or of one year, at the home's local time.
---@class Date
---@field type "date"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field on string "MM-DD" or "YYYY-MM-DD".
---@field time string "HH:MM"

---By a cron expression. The seconds come first: "0 30 7 * * MON-FRI" is 7:30 on weekdays.
---@class Cron
---@field type "cron"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field expression string sec min hour day month weekday [year]
---@field timezone? "utc"|"local" UTC, or the clocks in the home; "utc" by default.

---At sunrise; needs locale.latitude and locale.longitude in default.toml.
---@class Sunrise
---@field type "sunrise"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field offset_mins? integer Minutes later; negative is before.
---@field weekdays? Day[] Only on these days.

---At sunset; needs locale.latitude and locale.longitude in default.toml.
---@class Sunset
---@field type "sunset"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field offset_mins? integer Minutes later; negative is before.
---@field weekdays? Day[] Only on these days.

---Repeatedly, at an interval.
---@class Interval
---@field type "interval"
---@field id? string The `trigger_id` of the event, to distinguish several triggers.
---@field every_secs number The interval in seconds, more than 0.

-- Conditions ------------------------------------------------------------------------------------------------------

---@alias Condition DeviceStateIs|Presence|TimeWindow|RoomState|GroupState|SunPosition|Weekday|DateRange|VariableIs|All|Any|None

---The present state of a device matches.
---@class DeviceStateIs
---@field type "device_state"
---@field device_id string The device's id or alias.
---@field attribute Capability|string The attribute.
---@field equals? AttributeValue The required value.
---@field above? number The number must be above this.
---@field below? number The number must be below this.
---@field for_secs? number The value must have matched for these seconds.

---A person is present.
---@class Presence
---@field type "presence"
---@field device_id string The device that reports it.
---@field attribute? Capability|string The attribute; "presence" by default.
---@field equals? AttributeValue The required value; true by default.

---The home's local time is between two times. The time from 22:00 to 06:00 includes midnight.
---@class TimeWindow
---@field type "time_window"
---@field start string "HH:MM", included.
---@field end string "HH:MM", excluded. `end` is a reserved word in Lua, so write `["end"] = "06:00"`.

---The number of devices in a room.
---@class RoomState
---@field type "room_state"
---@field room_id string The id of the room.
---@field min_devices? integer At least this many.
---@field max_devices? integer At most this many.

---The number of devices in a group.
---@class GroupState
---@field type "group_state"
---@field group_id string The id of the group.
---@field min_devices? integer At least this many.
---@field max_devices? integer At most this many.

---The home's local date is one of these weekdays.
---@class Weekday
---@field type "weekday"
---@field days Day[] { "mon", "tue" }

---The date lies between two days of the year, both included; "12-20" to "01-06" includes new year.
---@class DateRange
---@field type "date_range"
---@field from string "MM-DD"
---@field to string "MM-DD"

---The present value of a variable matches.
---@class VariableIs
---@field type "variable"
---@field name string The name of the variable.
---@field equals? any The required value.
---@field above? number The number must be above this.
---@field below? number The number must be below this.

---All of these conditions hold.
---@class All
---@field type "all"
---@field conditions Condition[] At least one.

---At least one of these conditions holds.
---@class Any
---@field type "any"
---@field conditions Condition[] At least one.

---None of these conditions holds.
---@class None
---@field type "none"
---@field conditions Condition[] At least one.

---The sun is up or down; needs locale.latitude and locale.longitude in default.toml.
---@class SunPosition
---@field type "sun_position"
---@field after? "sunrise"|"sunset" From then on; without `before`, until the opposite event of the sun.
---@field before? "sunrise"|"sunset" Until then; without `after`, from the opposite event of the sun.
---@field after_offset_mins? integer Minutes later; negative is before.
---@field before_offset_mins? integer Minutes later; negative is before.

-- Events ----------------------------------------------------------------------------------------------------------

---The event that started an automation: `execute = function(ctx, event)`. Its fields depend on the trigger.
---@class Event
---@field type string The trigger's type; "manual" for a run by hand.
---@field device_id? string The device that changed.
---@field attribute? Capability|string The attribute that the trigger watches.
---@field value? any The present value of the attribute or variable.
---@field previous_value? any The previous value.
---@field attributes? Attributes The present attributes of the device.
---@field scheduled_at? string The scheduled time, in UTC: "2026-01-31T06:30:00.000Z".
---@field hour? integer The hour of a wall_clock trigger.
---@field minute? integer The minute of a wall_clock trigger.
---@field timezone? string The time zone of a wall_clock, date, or local cron trigger: "Europe/Berlin".
---@field expression? string The expression of a cron trigger.
---@field every_secs? number The seconds of an interval.
---@field offset_mins? integer The offset from sunrise or sunset.
---@field adapter? string The adapter that started.
---@field event? string "started" for an adapter, or the event of the device.
---@field data? any Further data of the device's event, or the body of the hook's request.
---@field hook? string The hook that was called.
---@field query? table The query of the hook's request, as texts.
---@field name? string The variable or the timer.
---@field payload? any The payload of the timer.
---@field late_secs? number Maximum delay in seconds, if a timer ended or an alarm began while the hub was off; 0 for an alarm's first value.
---@field on? string The day of a date trigger.
---@field time? string The time of a date trigger.
---@field trigger_id? string The id of the trigger, if it has one.
---@field message? string What failed.

---@class SetOptions
---@field durable? boolean true: ctx:set returns after the value is stored.

---@class WaitFor
---@field attribute Capability|string The attribute.
---@field equals? AttributeValue Wait until the attribute has this value.
---@field above? number Wait until the number is above this.
---@field below? number Wait until the number is below this.
---@field timeout_secs number At most this many seconds, up to 3600.

-- ctx -------------------------------------------------------------------------------------------------------------

---The home, for scenes and automations. Write every call with a colon: `ctx:sleep(5)`.
---@class Context
local Context = {}

---Command one device. The call returns when the device reports the result. A rejected command raises no error: check
---`status`. An unknown capability, action, or value raises an error.
---```lua
---local done = ctx:command("elgato_lights:light:0", { capability = "brightness", action = "set", value = 40 })
---if done.status ~= "ok" then ctx:log("warn", "no light", { why = done.message }) end
---```
---@param device_id string The device's id or alias, as in `lares devices` and on the page.
---@param command Command
---@return CommandResult
function Context:command(device_id, command) end

---Send a command to every device of a group, in the group's order. An unknown group raises an error; an empty group does not.
---@param group_id string
---@param command Command
---@return GroupResult[] # one for each member
function Context:command_group(group_id, command) end

---Run an operation of an adapter that is not a command: `ctx:invoke("elgato_lights:identify", { device_id = lamp })`.
---@param target InvokeTarget The adapter's name in default.toml, a colon, and the operation.
---@param payload? table The data of the operation.
---@return any
function Context:invoke(target, payload) end

---The present state of a device; nil for an unknown id, so test it with `if`.
---@param id string
---@return Device?
function Context:get_device(id) end

---Every device of the home.
---@return Device[]
function Context:list_devices() end

---A room; nil for an unknown id.
---@param id string
---@return Room?
function Context:get_room(id) end

---Every room.
---@return Room[]
function Context:list_rooms() end

---The devices in a room. An unknown room raises an error.
---@param room_id string
---@return Device[]
function Context:list_room_devices(room_id) end

---A group; nil for an unknown id.
---@param id string
---@return Group?
function Context:get_group(id) end

---Every group.
---@return Group[]
function Context:list_groups() end

---The devices of a group that exist at present. An unknown group raises an error.
---@param group_id string
---@return Device[]
function Context:list_group_devices(group_id) end

---Write a line to the log: `ctx:log("info", "good night", { lights = 3 })`.
---@param level LogLevel
---@param message string
---@param fields? table<string, any> Further data for programs.
function Context:log(level, message, fields) end

---Wait 0 to 3600 seconds without blocking anything else; call it again for longer.
---@param secs number
function Context:sleep(secs) end

---Send a command to every device in a room; see `command`. An unknown room raises an error.
---@param room_id string
---@param command Command
---@return GroupResult[] results One for each device, by id.
function Context:command_room(room_id, command) end

---The value of a variable. Scenes and automations share variables, which survive restarts.
---@param name string a-z, 0-9, _ and dots; at most 64 characters.
---@param default? any The result if it is not set.
---@return any value
function Context:get(name, default) end

---Set a variable; nil removes it. It is stored within minutes, or with `{ durable = true }` before the call returns.
---@param name string a-z, 0-9, _ and dots; at most 64 characters.
---@param value? any At most 16 KiB as JSON.
---@param options? SetOptions
function Context:set(name, value, options) end

---Start a timer, or restart it. The timer survives restarts of the hub. When it ends, the trigger "timer" fires.
---@param name string
---@param secs number 0 to 34560000 (400 days).
---@param payload? any The `payload` of the event; at most 16 KiB as JSON.
function Context:start_timer(name, secs, payload) end

---Cancel a timer.
---@param name string
---@return boolean was_running
function Context:cancel_timer(name) end

---Run a scene and wait for its end. The call raises an error if the scene fails, or if scenes run each other in a loop.
---@param id string
---@return GroupResult[] results The results of its commands.
function Context:run_scene(id) end

---Wait until the state of a device matches.
---```lua
---if not ctx:wait_for("roku_tv:tv", { attribute = "power", equals = "on", timeout_secs = 10 }) then return end
---```
---@param device_id string
---@param wanted WaitFor
---@return boolean came true if it happened in time.
function Context:wait_for(device_id, wanted) end

---The present state of lights, for `restore`.
---@param ids string[] Their ids.
---@return table snapshot
function Context:snapshot(ids) end

---Restore the state of lights.
---@param snapshot table The result of `snapshot`.
---@return GroupResult[] results
function Context:restore(snapshot) end

---Send a message with the operations in `[notify] targets`; without targets, it is a line of the log.
---@param message string
---@param fields? { title?: string, actions?: { label: string, hook: string }[], [string]: any } `title`, buttons that call hooks, and more for programs.
---@return GroupResult[] results One for each target.
function Context:notify(message, fields) end

---@alias LogLevel "trace"|"debug"|"info"|"warn"|"error"

---@alias InvokeTarget string
---| "elgato_lights:identify" # the light of { device_id = … } flashes
---| "elgato_lights:info"     # the light's information
---| "roku_tv:info"           # the TV's information

---@class CommandResult
---@field status "ok"|"unsupported"|"error" "unsupported": the device does not offer this command.
---@field message? string The reason of a failure.

---@class GroupResult: CommandResult
---@field target string The device.

---@class Device
---@field id string The adapter's name and the device's name there: "elgato_lights:light:0".
---@field name string The name that a person gave it, otherwise the vendor's, otherwise its id.
---@field room_id? string The room of the device; nil without a room.
---@field kind "Sensor"|"Light"|"Switch"|"Virtual"
---@field attributes Attributes The present attributes.
---@field metadata Metadata
---@field info Info Further information from the vendor.
---@field commands CommandSpec[] Its commands, sorted by capability.
---@field updated_at string When an attribute last changed, in UTC.
---@field last_seen string When it last answered, in UTC.

---@class Info
---@field manufacturer? string
---@field model? string
---@field firmware? string
---@field serial? string
---@field parent_id? string The device that it is a part of.
---@field area? string The place, as the vendor reports it.
---@field class? string More specific than `kind`: "cover", "plug", "media_player".

---@class CommandSpec
---@field capability Capability|CustomCapability
---@field actions Action[]
---@field schema CommandSchema The capability's schema with the restrictions of this device.

---@class CommandSchema
---@field type string
---@field values string[] The options; empty if it is not a choice.
---@field min? number
---@field max? number
---@field step? number
---@field unit? string

---@class Metadata
---@field source string The adapter that the device belongs to.
---@field accuracy? number
---@field vendor_specific table<string, any> Further data from the vendor.

---@class Room
---@field id string
---@field name string

---@class Group
---@field id string
---@field name string
---@field members string[] The ids of its devices, in their order.

-- Commands --------------------------------------------------------------------------------------------------------

---A command: `{ capability = "brightness", action = "set", value = 40 }`.
---@class Command
---@field capability Capability|CustomCapability The attribute to change.
---@field action Action The action; the capability's text lists its actions.
---@field value? AttributeValue For set, increase, and decrease; other actions have no value.
---@field transition_secs? number The duration of the change, if the device can fade.
---@field code? string The code of a lock or an alarm panel.

---@alias Action
---| "on" # power
---| "off" # power
---| "toggle" # power
---| "set" # to a value
---| "increase" # by a value
---| "decrease" # by a value
---| "get" # read-only capabilities; adapters reject it: read the device's attributes instead
---| "stop" # an effect, a player, a door or a cover
---| "mute" # the sound off
---| "unmute" # the sound on
---| "play" # media_playback
---| "pause" # media_playback
---| "next" # media_playback
---| "previous" # media_playback
---| "reset" # a counter
---| "lock" # a lock
---| "unlock" # a lock
---| "open" # a door or a cover
---| "close" # a door or a cover
---| "press" # a button, which only a custom capability is

---Data without a capability: `custom.<adapter kind>.<field>`, such as "custom.wled.effect" or "custom.mqtt.countdown".
---The device's `commands` list its actions, type, range, and options.
---@alias CustomCapability string

---The capabilities of devices, each with its actions.
---@alias Capability
---| "temperature_outdoor" # Air temperature outside. get
---| "temperature_apparent" # Apparent air temperature outside. get
---| "temperature_high" # Highest air temperature forecast for the day. get
---| "temperature_low" # Lowest air temperature forecast for the day. get
---| "wind_speed" # Mean speed of the wind. get
---| "wind_gust" # Speed of the strongest gusts. get
---| "visibility" # Distance of the farthest visible objects. get
---| "wind_direction" # Direction of the origin of the wind, in degrees or as a name. get
---| "rainfall" # Rain within a period. get
---| "uv_index" # Strength of the ultraviolet light, as an index. get
---| "weather_condition" # The weather in one or two words. get
---| "cloud_coverage" # Share of the sky that clouds cover, in percent. get
---| "power" # Whether the device is switched on. on, off, toggle
---| "state" # Whether the hub can reach the device. get
---| "brightness" # Brightness of the light. set, increase, decrease
---| "color_rgb" # Colour as red, green and blue. set
---| "color_hex" # Colour in hexadecimal notation. set
---| "color_xy" # Colour as a point in the CIE 1931 diagram. set
---| "color_hs" # Colour as hue and saturation. set
---| "color_temperature" # Colour temperature, in kelvin or mireds. set, increase, decrease
---| "color_mode" # The active colour mode. set
---| "effect" # The active light effect. set, stop
---| "transition" # Duration of a fade, in seconds. set
---| "illuminance" # Brightness at the sensor, in lux. get
---| "led_indication" # Whether the device's indicator light is on. get, set
---| "battery" # Remaining charge of the battery. get
---| "temperature" # Temperature at the sensor. get
---| "humidity" # Relative humidity at the sensor. get
---| "pressure" # Air pressure at the sensor. get
---| "co2" # Concentration of carbon dioxide in the air. get
---| "air_quality" # Quality of the air. get
---| "motion" # Whether motion is detected. get
---| "contact" # Whether the contact is open or closed. get
---| "occupancy" # Whether a person is present. get
---| "smoke" # Whether smoke is detected. get
---| "water_leak" # Whether leaked water is detected. get
---| "target_temperature" # The temperature to reach. set
---| "hvac_mode" # The requested mode of the unit. set
---| "hvac_state" # The current activity of the unit. get
---| "fan_mode" # Mode of the fan, in the vendor's words. set
---| "swing_mode" # Movement of the vanes, in the vendor's words. set
---| "preset_mode" # The vendor's active preset. set
---| "power_consumption" # Power that the device uses at the moment. get
---| "voltage" # Supply voltage. get
---| "current" # Electric current at the moment. get
---| "energy_total" # Energy used since the counter was reset. reset
---| "energy_today" # Energy used today. get
---| "energy_yesterday" # Energy used yesterday. get
---| "energy_month" # Energy used this month. get
---| "volume" # Volume of the player. set, increase, decrease
---| "muted" # Whether the sound is muted. set, mute, unmute
---| "media_source" # The input in use. set
---| "media_app" # The app in use. set
---| "media_title" # The title that is playing. get
---| "media_playback" # The state of the player. play, pause, stop, next, previous
---| "lock" # Whether the lock is locked. lock, unlock
---| "door" # Position of the door. open, close, stop
---| "garage_door" # Position of the garage door. open, close, stop
---| "cover_position" # Position of the cover; 100 is open. open, close, stop, set
---| "cover_tilt" # Position of the slats; 100 is open. open, close, stop, set

---The present attributes of a device, by capability. Data without a capability is named `custom.<adapter>.<field>`.
---@class Attributes
---@field temperature_outdoor? Measurement Air temperature outside.
---@field temperature_apparent? Measurement Apparent air temperature outside.
---@field temperature_high? Measurement Highest air temperature forecast for the day.
---@field temperature_low? Measurement Lowest air temperature forecast for the day.
---@field wind_speed? Measurement Mean speed of the wind.
---@field wind_gust? Measurement Speed of the strongest gusts.
---@field visibility? Measurement Distance of the farthest visible objects.
---@field wind_direction? integer|string Direction of the origin of the wind, in degrees or as a name.
---@field rainfall? Accumulation Rain within a period.
---@field uv_index? number Strength of the ultraviolet light, as an index.
---@field weather_condition? string The weather in one or two words.
---@field cloud_coverage? integer Share of the sky that clouds cover, in percent.
---@field power? "on"|"off" Whether the device is switched on.
---@field state? "online"|"offline"|"unavailable"|"unknown" Whether the hub can reach the device.
---@field brightness? Percentage Brightness of the light.
---@field color_rgb? RgbColor Colour as red, green and blue.
---@field color_hex? HexColor Colour in hexadecimal notation.
---@field color_xy? XyColor Colour as a point in the CIE 1931 diagram.
---@field color_hs? HsColor Colour as hue and saturation.
---@field color_temperature? ColorTemperature Colour temperature, in kelvin or mireds.
---@field color_mode? "color_temp"|"rgb"|"xy"|"hs"|"white" The active colour mode.
---@field effect? "none"|"flash"|"strobe"|"colorloop"|"random" The active light effect.
---@field transition? number Duration of a fade, in seconds.
---@field illuminance? integer Brightness at the sensor, in lux.
---@field led_indication? boolean Whether the device's indicator light is on.
---@field battery? Percentage Remaining charge of the battery.
---@field temperature? Measurement Temperature at the sensor.
---@field humidity? Measurement Relative humidity at the sensor.
---@field pressure? Measurement Air pressure at the sensor.
---@field co2? Measurement Concentration of carbon dioxide in the air.
---@field air_quality? "unknown"|"excellent"|"good"|"moderate"|"poor"|"unhealthy"|"hazardous" Quality of the air.
---@field motion? "detected"|"clear" Whether motion is detected.
---@field contact? "open"|"closed" Whether the contact is open or closed.
---@field occupancy? "occupied"|"unoccupied" Whether a person is present.
---@field smoke? boolean Whether smoke is detected.
---@field water_leak? boolean Whether leaked water is detected.
---@field target_temperature? Measurement The temperature to reach.
---@field hvac_mode? "off"|"heat"|"cool"|"auto"|"heat_cool"|"dry"|"fan_only" The requested mode of the unit.
---@field hvac_state? "off"|"idle"|"heating"|"cooling"|"fan_only"|"dry" The current activity of the unit.
---@field fan_mode? string Mode of the fan, in the vendor's words.
---@field swing_mode? string Movement of the vanes, in the vendor's words.
---@field preset_mode? string The vendor's active preset.
---@field power_consumption? Measurement Power that the device uses at the moment.
---@field voltage? Measurement Supply voltage.
---@field current? Measurement Electric current at the moment.
---@field energy_total? Accumulation Energy used since the counter was reset.
---@field energy_today? Accumulation Energy used today.
---@field energy_yesterday? Accumulation Energy used yesterday.
---@field energy_month? Accumulation Energy used this month.
---@field volume? Percentage Volume of the player.
---@field muted? boolean Whether the sound is muted.
---@field media_source? string The input in use.
---@field media_app? string The app in use.
---@field media_title? string The title that is playing.
---@field media_playback? "playing"|"paused"|"stopped"|"buffering"|"idle" The state of the player.
---@field lock? "locked"|"unlocked"|"jammed" Whether the lock is locked.
---@field door? "open"|"closed"|"opening"|"closing"|"stopped"|"jammed" Position of the door.
---@field garage_door? "open"|"closed"|"opening"|"closing"|"stopped"|"jammed" Position of the garage door.
---@field cover_position? Percentage Position of the cover; 100 is open.
---@field cover_tilt? Percentage Position of the slats; 100 is open.
---@field [string] any

---The value of an attribute; its type follows from the capability.
---@alias AttributeValue boolean|number|string|Measurement|ColorTemperature|RgbColor|XyColor|HsColor

---0 to 100.
---@alias Percentage integer

---"#ffa500"
---@alias HexColor string

---A number and its unit: `{ value = 21.5, unit = "°C" }`.
---@class Measurement
---@field value number
---@field unit string

---A sum over a period.
---@class Accumulation: Measurement
---@field period string

---`{ value = 2900, unit = "kelvin" }`
---@class ColorTemperature
---@field value integer 2200 to 7000 kelvin, or 153 to 556 mireds; a device may offer less.
---@field unit "kelvin"|"mireds"

---@class RgbColor
---@field r integer 0 to 255.
---@field g integer 0 to 255.
---@field b integer 0 to 255.

---@class XyColor
---@field x number 0 to 1.
---@field y number 0 to 1.

---@class HsColor
---@field hue integer 0 to 360.
---@field saturation integer 0 to 100.

-- Lua -------------------------------------------------------------------------------------------------------------
-- What differs from Lua 5.4 as it comes. string, table, math, utf8 and coroutine are as you know them.

---Load `config/scripts/<name>.lua` and return its result: `require("lights")`; `require("rooms.hall")` is
---`config/scripts/rooms/hall.lua`. Read once in each execution, so that an edit takes effect with the next.
---@param name string Dots for folders, no `.lua`.
---@return any
function require(name) end

---Write to the hub's log, at level info.
function print(...) end

---As in Lua, for text only: bytecode is refused.
---@param chunk string|fun(): string?
---@param name? string
---@param mode? "t"
---@param env? table
---@return function?
---@return string? fault
function load(chunk, name, mode, env) end

---As in Lua, but a metatable with `__gc` is refused.
---@generic T: table
---@param object T
---@param meta? table
---@return T
function setmetatable(object, meta) end

---As in Lua, for "collect", "step" and "count" only.
---@param option? "collect"|"step"|"count"
---@return number
function collectgarbage(option) end

---Time, in the home's time zone. There is no os.execute, os.getenv or os.exit.
os = {}

---Return the seconds from 1970 in UTC until now, or until the local time in the table.
---@param fields? { year: integer, month: integer, day: integer, hour?: integer, min?: integer, sec?: integer }
---@return integer
function os.time(fields) end

---Return the time as text, or as a table with "*t". The time is local, or UTC if the form begins with "!".
---@param form? string `os.date("%H:%M")`
---@param seconds? integer Seconds since 1970; the present time when left out.
---@return string|table
function os.date(form, seconds) end

---Seconds of processor time, to measure with.
---@return number
function os.clock() end

---The seconds from one time to another.
---@param later integer
---@param earlier integer
---@return number
function os.difftime(later, earlier) end

---Only the traceback is left of it.
debug = {}

---The place of the execution, as text.
---@param message? any
---@param level? integer
---@return string
function debug.traceback(message, level) end

---Unavailable in Lares: use require.
---@deprecated
function dofile() end

---Unavailable in Lares: use require.
---@deprecated
function loadfile() end

---Unavailable in Lares: use ctx:log("warn", …).
---@deprecated
function warn() end

---Unavailable in Lares: bytecode is rejected.
---@deprecated
function string.dump() end
