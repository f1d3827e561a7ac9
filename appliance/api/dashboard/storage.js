// Read or set a value in the browser's storage. Return null if the browser stores no data.
export function stored(name, value) {
	try {
		if (value === null) localStorage.removeItem(name);
		else if (value !== undefined) localStorage.setItem(name, value);
		return localStorage.getItem(name);
	} catch {
		return null;
	}
}
