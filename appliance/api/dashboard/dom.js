// Draws the page from a description: `tags.p({ class: "x" }, "text")` describes an element, `use(Part, props)`
// describes a component, and an array describes a sequence of both. `draw` changes only the differences. Text becomes
// text nodes and attributes, never markup. If a component fails, `instead(error)` replaces the component, and the
// rest of the page remains.

const SVG = "http://www.w3.org/2000/svg";

/** @type {any} */
export const tags = new Proxy({}, { get: (_, name) => (...all) => describe(name, all) });

const NONE = {};

function describe(type, kids) {
	const [first] = kids;
	const isProps = first?.constructor === Object && first.kids === undefined;
	const props = isProps ? kids.shift() : NONE;
	return { type, key: props.key, props, kids };
}

/** @type {(type: any, props?: any) => any} */
export const use = (type, props = NONE) => ({ type, key: props.key, props, kids: [] });

// Redraw the component only after a change of a property or of a state inside the component.
export const memo = (type) => Object.assign((props) => type(props), { isMemo: true });

let redraw;
let fallback;
let owner = null;
let slot = 0;
let effects = [];
let root = null;

export function draw(description, place, again, instead) {
	[redraw, fallback] = [again, instead];
	const focused = /** @type {HTMLElement} */ (document.activeElement);
	const hadFocus = focused && focused !== document.body; // focusing the body would only force a layout
	const way = hadFocus ? wayTo(focused) : [];
	root = patch(place, root, description, null);
	arrange(place, [root]);
	if (hadFocus && document.activeElement === document.body) (focused.isConnected ? focused : nearest(way))?.focus({ preventScroll: true });
	const due = effects;
	effects = [];
	due.forEach(orElse);
}

// --- focus after an element was moved or removed --------------------------------------------------

const CONTROL = "a[href], button:not(:disabled)"; // no fields, because a field would open a phone's keyboard

// The ancestors of an element, innermost first. Each ancestor has the position of the child that leads to the
// element.
function wayTo(node) {
	const way = [];
	for (let at = node; at?.parentElement; at = at.parentElement) way.push([at.parentElement, [...at.parentElement.children].indexOf(at)]);
	return way;
}

// Return the control that is now at this position, otherwise the previous control, otherwise the view's heading.
function nearest(way) {
	const [around, at] = way.find(([each]) => each.isConnected) ?? [document.body, 0];
	const near = [around.children[at], around.children[at - 1]].filter(Boolean);
	return near.map((each) => (each.matches(CONTROL) ? each : each.querySelector(CONTROL))).find(Boolean) ?? document.querySelector("h1");
}

// --- state of components ----------------------------------------------------------------------------

export function useState(initial) {
	const me = owner;
	const cell = (me.cells[slot++] ??= { value: initial });
	const set = (value) => {
		const next = typeof value === "function" ? value(cell.value) : value;
		if (Object.is(next, cell.value)) return;
		cell.value = next;
		for (let each = me; each; each = each.owner) each.isDirty = true;
		redraw();
	};
	return [cell.value, set];
}

export const useRef = (current = null) => useState({ current })[0];

// Run `work` after drawing, and again after a change of `reasons`. `work` can return a clean-up function.
export function useEffect(work, reasons) {
	const cell = (owner.cells[slot++] ??= {});
	if (cell.reasons?.every((each, at) => Object.is(each, reasons[at]))) return;
	cell.reasons = reasons;
	effects.push(() => {
		cell.stop?.();
		cell.stop = work();
	});
}

// --- drawing -------------------------------------------------------------------------------------

function patch(parent, old, fresh, within) {
	if (Array.isArray(fresh)) fresh = { type: "", props: {}, kids: fresh };
	if (fresh === null || fresh === undefined || typeof fresh === "boolean") fresh = { type: "", props: {}, kids: [] };
	if (typeof fresh !== "object") fresh = { type: "#", props: { text: String(fresh) }, kids: [] };
	if (old && (old.type !== fresh.type || old.key !== fresh.key)) {
		remove(old);
		old = null;
	}
	const item = old ?? { type: fresh.type, key: fresh.key, props: {}, kids: [], cells: [], owner: within };
	const before = item.props;
	item.props = fresh.props;
	if (typeof fresh.type === "function") drawPart(parent, item, before, !old);
	else if (fresh.type === "#") drawText(item, before);
	else if (fresh.type === "") item.kids = patchAll(parent, item.kids, fresh.kids, within);
	else drawElement(parent, item, before, fresh.kids, within);
	return item;
}

function drawPart(parent, item, before, isNew) {
	if (!isNew && item.type.isMemo && !item.isDirty && isSame(before, item.props)) return;
	item.isDirty = false;
	const [outer, at] = [owner, slot];
	[owner, slot] = [item, 0];
	const drawn = orElse(() => item.type(item.props));
	[owner, slot] = [outer, at];
	item.kids = [patch(parent, item.kids[0], drawn, item)];
}

function isSame(before, props) {
	for (const name in before) if (!(name in props)) return false;
	for (const name in props) if (before[name] !== props[name]) return false;
	return true;
}

function orElse(run) {
	try {
		return run();
	} catch (error) {
		reportError(error);
		return fallback(error);
	}
}

function drawText(item, before) {
	item.node ??= document.createTextNode("");
	if (before.text !== item.props.text) item.node.data = item.props.text;
}

function drawElement(parent, item, before, kids, within) {
	const isNew = !item.node;
	const node = (item.node ??= document.createElementNS(item.type === "svg" ? SVG : parent.namespaceURI, item.type));
	item.kids = patchAll(node, item.kids, kids, within);
	arrange(node, item.kids);
	const { props } = item;
	for (const name in before) if (!(name in props)) set(node, name, null);
	for (const name in props) if (props[name] !== before[name]) set(node, name, props[name], isNew);
	if ("value" in props && node.value !== String(props.value)) node.value = props.value;
}

function set(node, name, value, isNew) {
	if (name === "value" || name === "key") return;
	if (name === "ref") value && (value.current = node);
	else if (name === "initial") begin(node, String(value ?? ""), isNew);
	else if (name === "style") for (const each in value) node.style.setProperty(each, value[each]);
	else if (name.startsWith("on")) node[name] = value && ((event) => void value(event)); // returning false would cancel the event
	else if (value === null || value === undefined || value === false) isNew || node.removeAttribute(name);
	else node.setAttribute(name, value === true ? "" : value);
}

// Set a field's initial text, and update the text until a person types.
function begin(node, text, isNew) {
	if (isNew || node.value === node.defaultValue) node.value = text;
	node.defaultValue = text;
}

function patchAll(parent, old, fresh, within) {
	if (old.length === 0) return fresh.map((each) => patch(parent, undefined, each, within));
	if (fresh.every((each, at) => each?.key === old[at]?.key) && fresh.length === old.length) {
		return fresh.map((each, at) => patch(parent, old[at], each, within));
	}
	const keyed = new Map(old.filter((each) => each.key !== undefined).map((each) => [each.key, each]));
	const kept = new Set();
	const next = fresh.map((each, at) => {
		const known = each?.key !== undefined ? keyed.get(each.key) : old[at]?.key === undefined ? old[at] : undefined;
		const item = patch(parent, known, each, within);
		kept.add(item);
		return item;
	});
	old.filter((each) => !kept.has(each)).forEach(remove);
	return next;
}

function remove(item) {
	if (item.isGone) return;
	item.isGone = true;
	item.cells.forEach((cell) => cell.stop?.());
	item.kids.forEach(remove);
	item.node?.remove();
}

function arrange(parent, items) {
	let at = parent.firstChild;
	const visit = (item) => {
		if (!item.node) item.kids.forEach(visit);
		else if (item.node === at) at = at.nextSibling;
		else parent.insertBefore(item.node, at);
	};
	items.forEach(visit);
}
