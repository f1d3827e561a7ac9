---@meta
-- What a kind of adapter is given and returns, for editors: completion, explanations, and a red line under a typo.
-- Nothing here is ever run. Write `---@type Kind` above the `return {` of a file in `config/adapters/`.

---A file in `config/adapters/` returns one: how the hub talks to one sort of device.
---@class Kind
---@field name string The kind's name for people.
---@field settings? table<string, KindSetting> The keys that its sections may have, beside those of every kind.
---@field base_url? string Where its devices answer when the section says nothing.
---@field poll_interval_secs? integer Seconds between two polls when the section says nothing; 5 if this does not either.
---@field max_silence_secs? integer Seconds until a device that says nothing is offline, for those that sleep.
---@field origins? table<string, string|KindOrigin> Further addresses for `ctx:http { origin = … }`.
---@field poll? fun(ctx: KindContext): KindDevice[], number? All devices, and the seconds until the next poll.
---@field listen? KindListen A connection over which the vendor pushes.
---@field hook? fun(ctx: KindContext, request: KindHook): KindUpdate? What is sent to the section from outside.
---@field command? fun(ctx: KindContext, device: KindDevice, command: Command): KindDevice|boolean|nil, string? Do it.
---@field operations? table<string, function|KindOperation> What scenes and automations invoke.

---One key of the kind's sections.
---@class KindSetting
---@field type "string"|"integer"|"number"|"boolean"|"duration"|"list"
---@field default? any The value where a section says nothing.
---@field required? boolean Whether a section must state it.
---@field min? number The least value of a number or duration.
---@field max? number The largest value of a number or duration.
---@field values? string[] The words that a string may be.
---@field secret? boolean Whether it must stand in no log, answer or recording.
---@field description? string A few words for whoever left it out.

---@class KindOrigin
---@field setting string The setting that holds the address.

---@class KindOperation
---@field run fun(ctx: KindContext, payload: table): any, string? The result; or nil and why not.
---@field timeout_secs? number How long it may take, up to 300; 5 when left out.

---A connection that the hub opens and keeps.
---@class KindListen
---@field path string Begins with "/".
---@field receive fun(ctx: KindContext, message: any): KindUpdate? A message: a table where it is JSON, else text.
---@field hello? fun(ctx: KindContext): any What is sent first, each time it opens.
---@field kind? "websocket"|"sse" "sse": server-sent events, each `{ event, data, id }`.
---@field reply? string The field with the id of a message, for `ctx:ask`.
---@field max_message_kb? integer The largest message, up to 16384; 1024 when left out.

---A device, as `poll` tells it.
---@class KindDevice
---@field id string Its name within the section; it never changes.
---@field kind? "Sensor"|"Light"|"Switch"|"Virtual" Needed where the hub does not know the device yet.
---@field class? string More than the kind says: "plug", "cover", "media_player" …
---@field name? string What its vendor calls it.
---@field info? KindInfo
---@field attributes? Attributes What it shows.
---@field commands? (string|KindCommand)[] What it takes; a capability's name stands for all that it usually takes.
---@field events? (string|KindEvent)[] What just happened at it.
---@field state? "online"|"unavailable" "unavailable": its bridge does not reach it.

---@class KindInfo
---@field manufacturer? string
---@field model? string
---@field firmware? string
---@field serial? string
---@field parent_id? string The id of the device that it is a part of.
---@field area? string
---@field class? string

---@class KindCommand
---@field capability string
---@field actions string[]
---@field min? number
---@field max? number
---@field step? number
---@field unit? string
---@field values? string[]
---@field type? string Of a `custom.` capability.

---@class KindEvent
---@field event string
---@field data? table
---@field id? string The device, where the event stands in an update.

---What `hook` and `receive` return.
---@class KindUpdate
---@field devices? KindDevice[] Attributes that are not named stay.
---@field events? KindEvent[]
---@field send? any What to send over the connection of `listen`.
---@field poll? boolean true: poll at once.
---@field complete? boolean true: these devices are all there are.

---@class KindHook
---@field method string
---@field query table<string, string>
---@field headers table<string, string>
---@field data? any The body as JSON or form.
---@field body string

---@class KindRequest
---@field path string Begins with "/".
---@field method? "GET"|"POST"|"PUT"|"DELETE"|"PATCH"|"HEAD"|"OPTIONS"
---@field query? table<string, string|number|boolean>
---@field headers? table<string, string|number>
---@field json? any
---@field form? table<string, string|number|boolean>
---@field body? string
---@field timeout_secs? number
---@field origin? string One of `origins`; the section's own address when left out.

---@class KindResponse
---@field status integer
---@field headers table<string, string> Names in lower case.
---@field body string
---@field json? any Where the body is JSON.

---What the functions of a kind are given.
---@class KindContext
---@field settings table<string, any> What the section says, with the defaults.
---@field memory table Lasts while the adapter runs; up to 64 KiB of data.
KindContext = {}

---Ask the section's address, or one of `origins`. Raises where nothing answers.
---@param request KindRequest
---@return KindResponse
function KindContext:http(request) end

---The JSON of an answer with status 200 that is a table, and has the field. Raises a sentence for any other: that of
---`reasons` for its status, else that this is no such device, or has a fault of its own (from 500 on).
---@param request string|KindRequest A path, or a request.
---@param field? string
---@param reasons? table<integer, string>
---@return table
function KindContext:fetch(request, field, reasons) end

---Send a text, or a table as JSON, over the connection of `listen`.
---@param message any
function KindContext:send(message) end

---Send a table with a fresh id, and wait for the message with that id.
---@param message table
---@param timeout_secs? number
---@return table
function KindContext:ask(message, timeout_secs) end

---Keep a text over restarts; nil forgets it.
---@param key string
---@param text? string
function KindContext:keep(key, text) end

---A text that was kept, or nil.
---@param key string
---@return string?
function KindContext:kept(key) end

---A line of the log.
---@param level "trace"|"debug"|"info"|"warn"|"error"
---@param message any
---@param fields? table
function KindContext:log(level, message, fields) end

---The seconds since 1970.
---@return integer
function KindContext:now() end

json, xml, crypto = {}, {}, { hex = {}, base64 = {} }

---A measurement, or with a period an accumulation; nil where the value is no number.
---@param value any
---@param unit string
---@param period? string
---@param parts? number How many of the vendor's units make one: 1000 for Wh as kWh.
---@return table?
function measure(value, unit, period, parts) end

---The nearest integer; nil where the value is no number.
---@param value any
---@return number?
function round(value) end

---The table under these names in a part of an answer, one in the other; an empty one where there is none.
---@param of any
---@param ... string|integer
---@return table
function part(of, ...) end

---The tables in the list that stands there.
---@param of any
---@param ... string|integer
---@return table[]
function rows(of, ...) end

---The tables under each name there, in order, `for name, each in parts(of) do`; an empty one for what is no table.
---@param of any
---@param ... string|integer
---@return fun(): string?, table
function parts(of, ...) end

---The first of the values that is a text with something in it; nil where none is.
---@param ... any
---@return string?
function text(...) end

---The value that a text holds; or nil and a sentence.
---@param text string
---@return any, string?
function json.decode(text) end

---@param value any
---@return string
function json.encode(value) end

---The root element, `{ name, attributes, text, children }`; or nil and a sentence.
---@param text string
---@return table?, string?
function xml.decode(text) end

---@param text string
---@return string hexadecimal
function crypto.md5(text) end

---@param text string
---@return string hexadecimal
function crypto.sha1(text) end

---@param text string
---@return string hexadecimal
function crypto.sha256(text) end

---@param algorithm "md5"|"sha1"|"sha256"
---@param key string
---@param text string
---@return string hexadecimal
function crypto.hmac(algorithm, key, text) end

---@param algorithm "md5"|"sha1"|"sha256"
---@param password string
---@param salt string
---@param rounds integer
---@param length? integer
---@return string hexadecimal
function crypto.pbkdf2(algorithm, password, salt, rounds, length) end

---@param bytes integer
---@return string hexadecimal
function crypto.random(bytes) end

---@param text string
---@return string
function crypto.hex.encode(text) end

---@param text string
---@return string
function crypto.hex.decode(text) end

---@param text string
---@return string
function crypto.base64.encode(text) end

---@param text string
---@return string
function crypto.base64.decode(text) end
