// Completion of the home's names, the methods of `ctx`, and the fields of an automation.

const AROUND = 600; // number of characters before the cursor to search for a device

const option = (label, detail, more = {}) => ({ label: String(label), detail: detail || undefined, ...more });
const named = (things) => things.map(({ id, name }) => option(id, name, { type: "variable" }));
const plain = (texts, type = "constant") => [...new Set(texts)].sort().map((text) => option(text, "", { type }));

export function complete(context, names) {
	if (!names) return null;
	const line = context.state.doc.lineAt(context.pos);
	const before = line.text.slice(0, context.pos - line.from);
	const around = context.state.sliceDoc(Math.max(0, context.pos - AROUND), context.pos);
	const method = /\bctx:(\w*)$/.exec(before);
	if (method) return { from: context.pos - method[1].length, options: names.ctx.map(methodOf), validFor: /^\w*$/ };
	const text = /["']([^"']*)$/.exec(before);
	const isInside = text && (before.match(/["']/g).length % 2 === 1);
	if (isInside) {
		const options = optionsIn(before.slice(0, -text[0].length), around, names);
		return options.length ? { from: context.pos - text[1].length, options, validFor: /^[^"']*$/ } : null;
	}
	const word = /\w*$/.exec(before)[0];
	if (!word && !context.explicit) return null;
	const kind = /type\s*=\s*["'](\w+)["'][^{}]*$/.exec(around)?.[1];
	let fields = [];
	if (kind) fields = names.types[kind] ?? [];
	else if (/^\s*\w*$/.test(before)) fields = names.automation;
	if (!fields.length) return null;
	const options = fields.map((field) => option(field, "", { type: "property", apply: assignment(field) }));
	return { from: context.pos - word.length, options, validFor: /^\w*$/ };
}

const assignment = (field) => (field === "end" ? '["end"] = ' : `${field} = `);

const methodOf = ({ name, arguments: args, description }) => option(name, `(${args.join(", ")})`, { type: "method", info: description, apply: `${name}(` });

function optionsIn(lead, around, names) {
	const devices = names.devices.map(({ id, alias, name, room }) => option(alias ?? id, [name, room].filter(Boolean).join(" · "),
		{ type: "variable", info: alias ? id : undefined }));
	const mentioned = deviceIn(around, names.devices);
	const able = mentioned ? [mentioned] : names.devices;
	const capability = /capability\s*=\s*["']([\w.]+)["'][^}]*$/.exec(around)?.[1];
	const commands = able.flatMap((each) => each.commands).filter((each) => !capability || each.capability === capability);
	if (/\btype\s*=\s*$/.test(lead)) return plain(Object.keys(names.types), "type");
	if (/\battribute\s*=\s*$/.test(lead)) return plain(able.flatMap(({ attributes }) => attributes), "property");
	if (/\bcapability\s*=\s*$/.test(lead)) return plain(able.flatMap((each) => each.commands.map((one) => one.capability)), "property");
	if (/\baction\s*=\s*$/.test(lead)) return plain(commands.flatMap(({ actions }) => actions), "keyword");
	if (/\bevent\s*=\s*$/.test(lead)) return plain(able.flatMap(({ events }) => events));
	if (/\b(value|equals)\s*=\s*$/.test(lead)) return plain(commands.flatMap(({ schema }) => schema.values ?? []));
	if (/\broom_id\s*=\s*$|command_room\(\s*$|get_room\(\s*$/.test(lead)) return named(names.rooms);
	if (/\bgroup_id\s*=\s*$|command_group\(\s*$|get_group\(\s*$/.test(lead)) return named(names.groups);
	if (/scene\w*\(\s*$/.test(lead)) return named(names.scenes);
	if (/:(get|set)\(\s*$/.test(lead)) return plain(names.variables);
	if (/timer\w*\(\s*$/.test(lead)) return plain(names.timers);
	if (/invoke\(\s*$/.test(lead)) return plain(names.operations);
	if (/\bmode\s*=\s*$/.test(lead)) return plain(["single", "restart", "queued", "parallel"]);
	return [...devices, ...named(names.rooms), ...named(names.groups)];
}

// Return the last device that the text names.
function deviceIn(text, devices) {
	const at = (each) => Math.max(text.lastIndexOf(`"${each.id}"`), each.alias ? text.lastIndexOf(`"${each.alias}"`) : -1);
	const last = devices.reduce((best, each) => (best === null || at(each) > at(best) ? each : best), null);
	return last && at(last) >= 0 ? last : null;
}
