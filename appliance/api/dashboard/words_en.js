// English texts. A self-explanatory term of the hub has no entry.

export const words = `
nav: Main
yes: yes
no: no
save: Save
set: Set
create: Create
delete: Delete
cancel: Cancel
running: Running now
done: Done
dismiss: Dismiss
refresh: Reload
rename: Rename {name}
saturation: Saturation
simulate: Simulate
simulate.event: Event
simulate.send: Send
offline: The hub cannot be reached.
files: Lua files
key.revoke.what: Revoke {name}
scenes: Scenes
groups: Groups
rooms: Rooms
automations: Automations
outcome: {done} of {all} done
nothing: Nothing yet.
broken: This part cannot be shown.
delete.what: Delete {name}
offline.since: The hub has been unreachable since {time}.
confirm.command: {action}: {name}?
confirm.others: {action}: also devices that are not lights ({names})?
confirm.delete: Delete {name}?
confirm.revoke: Revoke the key {name}? It stops working at once.
period.hour: Hour
period.day: Day
period.week: Week
period.month: Month
period.year: Year
files.wrong: Errors in Lua files: {count}. These files are not loaded:
backup.what: State, configuration and Lua files, without the keys' secrets
backup.download: Download
action.set: set
smoke.true: Smoke
smoke.false: No smoke
water_leak.true: Water
water_leak.false: Dry
presence.true: Present
presence.false: Away
label.own: {name} (its own)
away: {state} since {time}
away.hint: Check that the device has power and is in range. The last known values are below.
code: Code
code.ask: {name} asks for a code.
search: Search devices and rooms
search.found: Found: {count}
search.none: No device or room has that name.
edit: Favourites and order
favourites: Favourites
favourites.mark: Favourite: {name}
hidden.mark: Hide {name}
hidden.count: Hidden: {count} (see “Favourites and order”)
move: Move {name}: drag, or arrow keys
fold: Fold {name}
wall: Wall panel
wall.fill: Full screen
room.gone: This room does not exist.
room.day: The last day
timers: Timers
timer.due: ends {time}
variables: Variables
variable.value: Value of {name}
variable.new: Name of a new variable
summary: The home now
[nav]
home: Home
automations: Automations
settings: Settings
[error]
unreachable: The hub does not answer.
status: The hub answered with an error ({status}).
other_origin: This page can use only its own hub, not {api}.
no_page: There is no page {address}. This is the home.
insufficient_permissions: Your key does not permit this.
[home]
devices: Devices
unassigned: No room
empty: No devices yet.
members: Devices: {count}
on: On now
all: All {count}
[device]
events: Events
gone: This device does not exist.
facts: About this device
history: Values and history
no_history: No values in this period.
compare: Compare
by_day: {attribute} by day
by_month: {attribute} by month
hours: Older values: hourly average and range.
picture: {attribute}, values: {count}
no_picture: No picture yet.
still: Picture of {name}
table: As a table
uses: Used by
unused: No automation or scene uses this device, and it has received no command since the hub started.
lua: Commands in Lua
[fact]
manufacturer: Manufacturer
model: Model
firmware: Firmware
serial: Serial number
area: Area
parent: Part of
room: Room
updated: Last change
seen: Last seen
id: Id
alias: Short id
[source]
device: by hand
room: with its room
group: with its group
scene: scene
automation: automation
[automation]
no_run: no run known
gone: This automation does not exist.
why: When it runs
next: Next
last: Last run
off: switched off
fill_in: Off: fill in the names at the top of its file, then switch it on.
other_zone: Times here are in the browser's time zone; automations use {zone}.
run: Run now
history: What happened
waits: when its trigger matches
ran: last {time}{took}
due: next {time}
warned: Done, with warnings
source: Edit its file
[reason]
condition: Did not run: condition {detail}
cooldown: Did not run: too soon after the last run ({detail})
duplicate: Did not run: the same event had just happened ({detail})
mode: Did not run: another run was in progress ({detail})
disabled: Did not run: it is off.
brake: Paused: it triggered itself too often ({detail})
failed: Failed: {detail}
was: was {value}
[step]
sleep: Waited {duration}
wait: Waited for {what}
[trigger]
title: Runs when
change: {what} changes
event: {who}: event {event}
any_event: {who}: any event
at: At {time}
cron: By the cron expression {expression} ({zone})
interval: Every {duration}
variable: Variable {name}
timer: The timer {name} ends
webhook: The hook {hook} is called
adapter: The adapter {name} starts
any_adapter: An adapter starts
any_device: Any device
fails: Something fails
room: Room {name}
group: Group {name}
lasting: {what} for {duration}
now: now {value}
[condition]
title: Only if
after_sunrise: After sunrise
after_sunset: After sunset
before_sunrise: Before sunrise
before_sunset: Before sunset
least: At least {count} of the devices
most: At most {count} of the devices
all: All of these
any: At least one of these
none: None of these
yes: holds
no: does not hold
[doing]
sleep: Waiting until {time}
computing: Computing for {duration}
[unit]
degree: °{of}
percent: %
[arrange]
places: Assign rooms
up: Move {name} up
down: Move {name} down
leave: Take {name} out
add: Add a device to {name}
new_rooms: Name of a new room
new_groups: Name of a new group
choose: Choose {name}
join: Add chosen devices to a group: {count}
move: Move chosen devices: {count}
[box]
adapters: Adapters
last_success: Last answer {time}
figures: The hub
events: Live events
log: Log
discovery: Devices in the network
page: This page
role: your key: {role}
forget: Forget the key
[figure]
version: Version
uptime: Running since
memory: Memory
written: Written to the SD card
[role]
read: View only
write: View and control
admin: Admin
automation: Admin (program)
[key]
ask: Enter your key
missing: To see the key, run: sudo cat /var/lib/lares/first-key (Raspberry Pi), or cat data/first-key (container). lares demo prints the key. To make another key, run: sudo lares key create --label me --role admin
rejected: The hub does not accept this key. Enter another one.
secret: Key
use: Open
label: Name of a new key
role: Role
revoke: Revoke
made: Key for {name}
once: Shown only once: scan it with a phone to open the page there, or copy the text.
qr: QR code with the address and the key
loopback: "{host}" is an address that only this device can use, so a phone cannot use the code. Let the hub listen in your network, [api] bind_address = "0.0.0.0:3000", or use a reverse proxy, and open this page at the box's own address.
[pairing]
code: Pairing code, or text of the QR code
pair: Pair
scan: Scan
hold: Hold the QR code in front of the camera.
no_camera: The camera cannot be used ({reason}). Type the code.
done: Paired: {names}
title: Pairing
share: Share
shared: In the other app, within {minutes} minutes: scan this, or enter the code.
qr: Pairing code for the other app
identify: Identify
unpair: Unpair
confirm: Unpair {names}? It forgets this home.
press: To get its key, press the button on the device or bridge. Then press “Pair” within 30 seconds.
paste: Add this line to [adapters.{name}] in config/default.toml:
[hook]
label: Id of a new hook
what: An address for phones, buttons, and scripts. A call starts the automations with the trigger webhook.
once: Shown only once: anyone with this address can call the hook, and nothing else.
unheard: No automation uses this hook yet.
qr: QR code with the address of the hook
address: Address
[discovery]
what: Searches for devices that announce themselves, for three seconds
search: Search
none: Nothing found. Discovery does not reach other VLANs, or the network from inside a container.
section: Section for {name}
[action]
return_to_base: Return to base
clean_spot: Clean here
start_mowing: Mow
[value]
armed_custom_bypass: Armed in part
unoccupied: Clear
heat_cool: Heat and cool
degraded: Has errors
ok: Done
error: Failed
unsupported: Not possible here
skipped: Not run
timeout: Took too long
unavailable: Unavail­able
[attribute]
fan_speed: Suction
percentage: Speed
duration: Duration in seconds
volume_level: Loudness
tone: Tone
color_temperature: Warmth
color: Colour
color_mode: Colour mode
illuminance: Light
temperature_outdoor: Outdoors
temperature_apparent: Feels like
co2: CO₂
air_quality: Air
target_temperature: Target
hvac_mode: Mode
hvac_state: State
preset_mode: Preset
power_consumption: Power
energy_total: Energy
energy_today: Today
energy_yesterday: Yesterday
energy_month: Month
media_source: Source
media_app: App
media_title: Title
media_playback: Playback
garage_door: Garage
cover_position: Position
cover_tilt: Tilt
wind_speed: Wind
wind_direction: Wind from
rainfall: Rain
weather_condition: Weather
cloud_coverage: Clouds
[settings]
devices: Devices and adapters
devices.what: Find, add, and pair
rooms: Rooms and groups
rooms.what: Names, and the devices of each room
keys: Keys
keys.what: Access for phones, people, and programs
hooks: Hooks
hooks.what: Addresses that start automations
backup: Backup
backup.what: Download everything as one file
look: Appearance and language
look.what: In this browser
about: About
about.what: Version, memory, and SD card
diagnostics: Diagnostics
diagnostics.what: Log and live events
add: Add a device
[look]
scheme: Colours
auto: As the device
light: Light
dark: Dark
language: Language
browser: As the browser
hint: Colours and language are stored only in this browser.
[summary]
lit_one: {name} on
lit_many: {count} lights on
indoors: {value} inside
open_one: {name} open
open_many: {count} open
unlocked_one: {name} unlocked
unlocked_many: {count} unlocked
locked_one: {name} locked
locked_many: All locked
away_one: {name} unreachable
away_many: {count} unreachable
low_one: {name}: battery {share}
low_many: {count} batteries low
alarm_many: {count} alarms
[state]
open: {share} open
[first]
search: Search my network
add: Connect a broker or another device
docs: The file docs/first-evening.md shows the first steps.
[search]
close: Close the search
[sheet]
close: Close
more: All about this device
today: The last day
why: Why is it like this?
[reading]
detected: Motion
clear: No motion
occupied: Occupied
unoccupied: Nobody there
[chart]
mean: Mean
span: Lowest to highest
[cause]
device_state_change: A device changes
weather_state: The weather changes
device_event: A device reports an event
variable_change: A variable changes
timer: A timer ends
webhook: A hook is called
adapter_lifecycle: An adapter starts or stops
system_error: Something fails
wall_clock: At its time
cron: At its time
date: At its time
interval: At its interval
sunrise: At sunrise
sunset: At sunset
[editor]
try: Try now
simulate: Next 24 hours
versions: Earlier versions
saved: Saved and active.
saved_warned: Saved, with warnings: {count}. The margin shows them.
unsaved: Not saved yet.
other: Somebody else has changed this file. These are the differences from your text:
theirs: Use the other text
mine: Save my text
line: Line {line}:
keys: Ctrl+S saves, Ctrl+Space completes names, Ctrl+F searches, F8 goes to the next error. Tab leaves the field.
save_and_run: Save and run
no_id: The file has no id yet.
with_commands: With its commands
look: Look ahead
never: Nothing starts the automation in this time.
cut: Shown until {time}. The rest would take too long.
restore: Use this text
difference: Differences
equal: No differences.
runs: It runs
test: Test
events: Events, one per line (18:00 hall:motion motion detected)
settings: Settings, one per line (key = value)
recording: Recording (saved from an earlier test)
replay: Replay
record: Save the recording
[new]
title: New
recipes: From a recipe
gone: There is no recipe {name}.
empty: From an empty file
empty_what: You write it in Lua, with completion and checks.
automation: Automation
scene: Scene
adapter: Adapter kind
adapter_name: New kind
automation_name: New automation
scene_name: New scene
name: Name
make: Create
anyway: Create anyway
no_device: {label}: no device of this home has this value.
no_room: {label}: make a room first, under Settings.
no_group: {label}: make a group first, under Settings.
[duration]
second: seconds
minute: minutes
hour: hours
[add]
title: Add by address
kind: Kind
base_url: Address (URL)
url: Address (URL)
host: Host name or IP address
ip_address: IP address
port: Port
username: User name (if any)
password: Password (if any)
section: Name of the section
rule: Use only a-z, 0-9, and _.
make: Add
this: Add this device
done: Added. The adapter starts now.
other: For other kinds and settings, edit the configuration.
confirm_remove: Remove {name} from the configuration? Its devices disappear; their rooms and names are kept.
more: More settings
test: Test
found: It answers: {names}
found_none: It answers, but has no devices yet.
trace: Requests and answers
edit: Change {name}
kept: Unchanged
in_file: Change this setting in the file.
gone: There is no section {name}.
token: Token (if any)
default: Default: {value}
saved: Saved. The adapter restarts now.
[kind]
mqtt: MQTT broker (Zigbee2MQTT, ESPHome, Tasmota)
hue: Philips Hue bridge
tasmota_http: Tasmota over HTTP
elgato_lights: Elgato light
roku_tv: Roku TV
matter: Matter server
fritzbox: FRITZ!Box (who is at home)
notify: Messages
virtual: Virtual devices
[copy]
what: Copy: {name}
done: Copied: {name}
[alias]
rule: Use a-z, 0-9, and _, and begin with a letter.
offer: Give it a short id too: automations can use it instead of the long one.
`;
