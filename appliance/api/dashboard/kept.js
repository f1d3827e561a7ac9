// What the browser keeps, which may be nothing at all.
export function stored(name, value) {
	try {
		if (value === null) localStorage.removeItem(name);
		else if (value !== undefined) localStorage.setItem(name, value);
		return localStorage.getItem(name);
	} catch {
		return null;
	}
}
