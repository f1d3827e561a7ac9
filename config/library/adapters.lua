---@meta
-- Types of adapter kinds, for editors: completion, explanations, and warnings. This file never runs. Write `---@type Kind` above the `return {` of a file in `config/adapters/`.

---The table that a file in `config/adapters/` returns.
---@class Kind
---@field name string Display name of the kind.
---@field settings? table<string, KindSetting> Keys of its sections, in addition to the keys of every kind.
---@field base_url? string Default address of its devices.
---@field poll_interval_secs? integer Default seconds between two polls; 5 without it.
---@field max_silence_secs? integer Default seconds until a silent device is offline, for sleeping devices.
---@field origins? table<string, string|KindOrigin> Further addresses for `ctx:http { origin = … }`.
---@field poll? fun(ctx: KindContext): KindDevice[]?, number? All devices, and the seconds until the next poll.
---@field listen? KindListen A connection for pushed data.
---@field hook? fun(ctx: KindContext, request: KindHook): KindUpdate? A request to `/hooks/<section>`.
---@field command? fun(ctx: KindContext, device: KindDevice, command: Command): KindDevice|boolean|nil, string? Send a command.
---@field operations? table<string, function|KindOperation> Functions for `ctx:invoke`.

---One key of the sections.
---@class KindSetting
---@field type "string"|"integer"|"number"|"boolean"|"duration"|"list"
---@field default? any The value if a section does not set it.
---@field required? boolean Whether a section must state it.
---@field min? number The least value of a number or duration.
---@field max? number The largest value of a number or duration.
---@field values? string[] The allowed values.
---@field secret? boolean Whether it is hidden in logs, answers, and recordings.
---@field description? string Shown if the key is missing.

---@class KindOrigin
---@field setting string The setting that holds the address.

---@class KindOperation
---@field run fun(ctx: KindContext, payload: table): any, string? The result, or nil and a sentence.
---@field timeout_secs? number Time limit, up to 300; 5 by default.

---A connection that the hub opens and keeps.
---@class KindListen
---@field path string|fun(ctx: KindContext): string? Begins with "/"; a function may return nil: do not listen.
---@field receive fun(ctx: KindContext, message: any): KindUpdate? A message: a table if it is JSON, otherwise text.
---@field hello? fun(ctx: KindContext): any Returns the first message, each time the connection opens.
---@field kind? "websocket"|"sse" "sse": server-sent events, each `{ event, data, id }`; without hello and reply.
---@field reply? string The field with the id of a message, for `ctx:ask`.
---@field max_message_kb? integer Size limit of a message, up to 16384; 1024 by default.

---A device in the list of `poll`, or in an update.
---@class KindDevice
---@field id string Unique in the section; never changes.
---@field kind? "Sensor"|"Light"|"Switch"|"Virtual" Required until the hub knows the device.
---@field class? string More specific than the kind: "plug", "cover", "media_player" …
---@field name? string The name from the device.
---@field info? KindInfo
---@field attributes? Attributes Without this field, the device keeps its attributes.
---@field commands? (string|KindCommand)[] The name of a capability means all of its usual actions.
---@field events? (string|KindEvent)[] Events that just happened.
---@field state? "online"|"unavailable" "unavailable": the bridge does not reach the device.

---@class KindInfo
---@field manufacturer? string
---@field model? string
---@field firmware? string
---@field serial? string
---@field parent_id? string The id of the device that contains it.
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
---@field type? string For `custom.` capabilities.

---@class KindEvent
---@field event string
---@field data? table
---@field id? string The device, in an update.

---The result of `hook` and `receive`.
---@class KindUpdate
---@field devices? KindDevice[] Attributes that are not listed do not change.
---@field events? KindEvent[]
---@field send? any A message for the connection of `listen`.
---@field poll? boolean true: poll at once.
---@field complete? boolean true: the list of devices is complete.

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
---@field origin? string One of `origins`; the address of the section by default.

---@class KindResponse
---@field status integer
---@field headers table<string, string> Names in lower case.
---@field body string
---@field json? any Present if the body is JSON.

---The first argument of the functions of a kind.
---@class KindContext
---@field settings table<string, any> The values of the section, with defaults.
---@field memory table Lasts while the adapter runs; up to 64 KiB of data.
KindContext = {}

---Send a request to the address of the section, or to one of `origins`. Raises an error if there is no answer.
---@param request KindRequest
---@return KindResponse
function KindContext:http(request) end

---Return the JSON table of an answer with status 200 that has the field. Any other answer raises the sentence for its
---status in `reasons`, otherwise a general one.
---@param request string|KindRequest A path, or a request.
---@param field? string
---@param reasons? table<integer, string>
---@return table
function KindContext:fetch(request, field, reasons) end

---Send a text, or a table as JSON, over the connection of `listen`.
---@param message any
function KindContext:send(message) end

---Send a table with a new id, and wait for the message with that id.
---@param message table
---@param timeout_secs? number
---@return table
function KindContext:ask(message, timeout_secs) end

---Keep a text across restarts; nil removes the text.
---@param key string
---@param text? string
function KindContext:keep(key, text) end

---Return a kept text, or nil.
---@param key string
---@return string?
function KindContext:kept(key) end

---Write a log line.
---@param level "trace"|"debug"|"info"|"warn"|"error"
---@param message any
---@param fields? table
function KindContext:log(level, message, fields) end

---Return the seconds since 1970.
---@return integer
function KindContext:now() end

json, xml, crypto = {}, {}, { hex = {}, base64 = {} }

---Return a measurement, or an accumulation if there is a period; nil if the value is not a number.
---@param value any
---@param unit string
---@param period? string
---@param parts? number The vendor's units per unit: 1000 for Wh as kWh.
---@return table?
function measure(value, unit, period, parts) end

---Return the nearest integer; nil if the value is not a number.
---@param value any
---@return number?
function round(value) end

---Return the nested table under these names; an empty one if it is missing.
---@param of any
---@param ... string|integer
---@return table
function part(of, ...) end

---Return the tables in the list under these names.
---@param of any
---@param ... string|integer
---@return table[]
function rows(of, ...) end

---Iterate over the names of a table in order, with their tables: `for name, each in parts(of) do`.
---@param of any
---@param ... string|integer
---@return fun(): string?, table
function parts(of, ...) end

---Return the first value that is a non-empty text, or nil.
---@param ... any
---@return string?
function text(...) end

---Return the value of a JSON text, or nil and a sentence.
---@param text string
---@return any, string?
function json.decode(text) end

---@param value any
---@return string
function json.encode(value) end

---Return the root element, `{ name, attributes, text, children }`, or nil and a sentence. Forbidden characters are removed.
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
