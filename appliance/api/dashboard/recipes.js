// Creates automations and scenes from an empty file, or from a recipe. A form shows the recipe's fields. The result
// is an ordinary Lua file.

import { get, post, segment } from "./api.js";
import { listOfAll } from "./calendar.js";
import { idFor } from "./device_names.js";
import { tags, use, useState } from "./dom.js";
import { begin, fileAddress, listDrafts } from "./editor.js";
import { icon } from "./icons.js";
import { useLoaded } from "./loading.js";
import { inOrder } from "./preferences.js";
import { act, mayAdmin, state } from "./store.js";
import { actions, Button, card, empty, errorLine, HUB_LANGUAGE, titled } from "./ui.js";
import { nameOf } from "./values.js";
import { duration, t } from "./words.js";

const { a, div, fieldset, form, h1, input, label, legend, optgroup, option, p, select, small, span, strong } = tags;

const EMPTY = {
	automation: (id, name) => `return {
  id = "${id}",
  name = "${name}",
  trigger = { type = "wall_clock", time = "07:00" },
  execute = function(ctx)
    ctx:log("info", "it is seven")
  end,
}
`,
	adapter: (id, name) => `return {
  name = "${name}",
  settings = { base_url = { type = "string", required = true, description = "its address" } },
  poll_interval_secs = 10,
  poll = function(ctx)
    local status = ctx:http { path = "/status" }.json
    return { { id = "it", kind = "Switch", attributes = { power = status.on and "on" or "off" } } }
  end,
  command = function(ctx, device, command)
    ctx:http { method = "POST", path = "/" .. command.action }
  end,
}
`,
	scene: (id, name) => `return {
  id = "${id}",
  name = "${name}",
  execute = function(ctx)
  end,
}
`,
};

export function NewPage({ id }) {
	if (mayAdmin()) return use(Recipes, { key: id, id });
	return [h1({ tabindex: "-1" }, t("new.title")), empty(t("error.insufficient_permissions"))];
}

function Recipes({ id }) {
	const { data, error } = useLoaded(() => get("recipes"), []);
	const [typed, setTyped] = useState("");
	const back = a({ class: "back", href: id ? "#/new" : "#/automations" }, icon("back"), t(id ? "new.title" : "nav.automations"));
	const recipe = data?.recipes.find((each) => each.id === id);
	if (id) return [back, h1({ tabindex: "-1" }, recipe?.name ?? t(data ? "new.gone" : "new.title", { name: id })),
		recipe ? use(RecipeForm, { key: id, recipe }) : !data && empty(error ?? "…")];
	const start = (kind) => () => act("new", kind, async () => {
		const name = typed.trim() || t(`new.${kind}_name`);
		const file = await freeFile(kind, name);
		begin(`config/${kind}s/${file}.lua`, EMPTY[kind](file, name));
	});
	return [
		back,
		h1({ tabindex: "-1" }, t("new.title")),
		titled(t("new.empty"), div({ class: "card form" }, p({ class: "hint" }, t("new.empty_what")),
			label(span(t("new.name")), input({ type: "text", value: typed, maxlength: "200", placeholder: t("new.automation_name"),
				oninput: ({ target: { value } }) => setTyped(value) })),
			errorLine("new"), actions(
			use(Button, { label: t("new.automation"), onClick: start("automation") }), use(Button, { label: t("new.scene"), onClick: start("scene") }),
			use(Button, { label: t("new.adapter"), onClick: start("adapter") })))),
		titled(t("new.recipes"), card(byName(data?.recipes ?? []).map(({ id: each, name, description, kind }) =>
			a({ key: each, class: "entry", href: `#/new/${segment(each)}` },
			icon(kind === "scene" ? "scene" : "recipe"), span({ class: "title" }, strong(name), small(description)), icon("forth"))),
		!data && empty(error ?? "…"), data?.recipes.length === 0 && empty(t("nothing")))),
	];
}

// Return an unused name for a new file.
async function freeFile(kind, name) {
	const { files } = await get("files");
	const stems = [...files.filter((each) => each.kind === kind).map(({ path }) => path), ...listDrafts()]
		.map((path) => path.split("/").pop().replace(/\.lua$/, ""));
	return idFor(name, new Set([...state.automations.keys(), ...state.scenes.keys(), ...stems]));
}

const byName = (recipes) => [...recipes].sort((one, other) => one.name.localeCompare(other.name));

const MINUTE = 60;
const UNITS = [[1, "second"], [MINUTE, "minute"], [60 * MINUTE, "hour"]];

// Return a field's initial value, which is the field's default. Fields for devices, rooms, and groups are initially
// empty, because their default is only an example.
const initial = ({ type, default: preset }) => (["device", "room", "group"].includes(type) ? (Array.isArray(preset) ? [] : "") : preset);

function RecipeForm({ recipe }) {
	const { fields, kind, name: preset, description } = recipe;
	const [name, setName] = useState(preset);
	const [values, setValues] = useState(Object.fromEntries(fields.map((field) => [field.name, initial(field)])));
	const [warnings, setWarnings] = useState([]); // of the last check, until a value changes
	const target = `recipe ${recipe.id}`;
	const set = (field, value) => {
		setWarnings([]);
		setValues((old) => ({ ...old, [field]: value }));
	};
	const send = async (event) => {
		event.preventDefault();
		const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== null));
		await act(target, "make", async () => {
			const file = await freeFile(kind, name);
			const address = `recipes/${segment(recipe.id)}`;
			const asked = { file, name: name.trim() || preset, values: given };
			const found = warnings.length ? [] : (await post(`${address}/check`, asked)).warnings;
			setWarnings(found);
			if (found.length) return;
			const { path } = await post(address, asked);
			location.hash = kind === "scene" ? fileAddress(path) : `#/automations/${segment(file)}`;
		});
	};
	return [
		p(description),
		form({ class: "card form", onsubmit: send },
			label(span(t("new.name")), input({ type: "text", value: name, maxlength: "200", oninput: ({ target: { value } }) => setName(value) })),
			fields.map((field) => use(RecipeField, { key: field.name, field, value: values[field.name], onSet: (value) => set(field.name, value) })),
			p({ class: "hint", role: "status" }, sentenceOf(recipe, values)),
			errorLine(target),
			warnings.length > 0 && div({ role: "alert" }, warnings.map(({ message }, key) => p({ key, class: "warning", lang: HUB_LANGUAGE }, message))),
			actions(tags.button({ class: "main" }, t(warnings.length ? "new.anyway" : "new.make")))),
	];
}

// A sentence that describes the recipe's effect with these values.
function sentenceOf({ description, fields }, values) {
	const parts = fields.map((field) => [field.label, inWords(field, values[field.name])]).filter(([, text]) => text);
	return parts.length ? `${description} ${capital(parts.map(([name, text]) => `${name}: ${text}`).join("; "))}.`.replace(/\.\.$/, ".") : description;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function inWords({ type, of }, value) {
	if (value === null || value === "" || value?.length === 0) return "";
	if (type === "device") return listOfAll([value].flat().map((id) => nameOf(state.devices.get(id) ?? { id })));
	if (type === "room" || type === "group") return listOfAll([value].flat().map((id) => state[`${type}s`].get(id)?.name ?? id));
	if (type === "duration") return duration(Number(value));
	return `${value}${type === "number" ? unitIn(of) : ""}`;
}

const boundsIn = (of) => /^(-?[\d.]+)\.\.(-?[\d.]+)/.exec(of ?? "") ?? [];
const unitIn = (of) => (/\.\.\S+\s+(\S+)/.exec(of ?? "")?.[1] ?? "").replace(/^(?=.)/, " ");

function RecipeField({ field, value, onSet }) {
	const { type, of, default: preset } = field;
	const text = capital(field.label);
	const typed = ({ target }) => onSet(target.value);
	if (["device", "room", "group"].includes(type)) {
		const things = type === "device" ? devicesWith(of) : [...state[`${type}s`].values()];
		if (!things.length) return p({ class: "problem" }, a({ href: type === "device" ? "#/settings/add" : "#/settings/rooms" },
			t(`new.no_${type}`, { label: text })));
		return Array.isArray(preset) ? several(text, field, things, value, onSet)
			: label(span(text), select({ value, required: true, onchange: typed }, option({ value: "" }, "–"), grouped(type, things)));
	}
	if (type === "choice") return label(span(text), select({ value, onchange: typed },
		of.split("|").map((each) => each.trim()).map((each) => option({ key: each, value: each }, each))));
	if (type === "duration") return use(Lasting, { text, secs: Number(value), onSet });
	if (type === "time") return label(span(text), input({ type: "time", value, required: true, oninput: typed }));
	if (type === "number") {
		const [, min, max] = boundsIn(of);
		return label(span(`${text}${unitIn(of)}`), input({ type: "number", value, min, max, step: "any", required: true,
			oninput: ({ target }) => onSet(target.value === "" ? "" : Number(target.value)) }));
	}
	return label(span(text), input({ type: "text", value, maxlength: "1000", oninput: typed }));
}

// Return the devices with one of these attributes, or all devices.
function devicesWith(of) {
	const wanted = (of ?? "").split("|").map((each) => each.trim()).filter(Boolean);
	return inOrder([...state.devices.values()].filter(({ attributes, commands = [] }) => !wanted.length
		|| wanted.some((name) => name in attributes || commands.some(({ capability }) => capability === name))));
}

const roomName = ({ room_id: id }) => state.rooms.get(id)?.name ?? t("home.unassigned");
const chosenName = (type, thing) => (type === "device" ? nameOf(thing) : thing.name);

function grouped(type, things) {
	const options = (some) => some.map((each) => option({ key: each.id, value: each.id }, chosenName(type, each)));
	if (type !== "device") return options(things);
	return [...new Set(things.map(roomName))].map((room) => optgroup({ key: room, label: room }, options(things.filter((each) => roomName(each) === room))));
}

function several(text, { type, default: preset }, things, value, onSet) {
	const isMissing = preset.length > 0 && value.length === 0;
	const flip = (id) => onSet(value.includes(id) ? value.filter((each) => each !== id) : [...value, id]);
	return fieldset({ class: "several" }, legend(text), things.map((each, at) => label({ key: each.id, class: "choice" },
		input({ type: "checkbox", required: isMissing && at === 0, checked: value.includes(each.id), onchange: () => flip(each.id) }),
		span(chosenName(type, each)), type === "device" && small(roomName(each)))));
}

function Lasting({ text, secs, onSet }) {
	const [size] = UNITS.findLast(([each]) => secs >= Number(each) && secs % Number(each) === 0) ?? UNITS[0];
	const [chosen, setChosen] = useState(size);
	return label(span(text), span({ class: "buttons" },
		input({ type: "number", min: "0", step: "any", required: true, value: String(secs / chosen), oninput: ({ target }) => onSet(Number(target.value) * chosen) }),
		select({ "aria-label": text, value: String(chosen), onchange: ({ target }) => {
			onSet((secs / chosen) * Number(target.value));
			setChosen(Number(target.value));
		} }, UNITS.map(([each, name]) => option({ key: name, value: String(each) }, t(`duration.${name}`))))));
}
