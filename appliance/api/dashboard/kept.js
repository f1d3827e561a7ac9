// Read or set a value that the browser stores; null if it stores nothing.
export function stored(name, value) {
	try {
		if (value === null) localStorage.removeItem(name);
		else if (value !== undefined) localStorage.setItem(name, value);
		return localStorage.getItem(name);
	} catch {
		return null;
	}
}
