// The service worker: caches the page's files, so that the page opens without the hub. The worker never caches data
// of the home. Browsers run a service worker only over HTTPS or on localhost.

const CACHE = "lares-{{version}}";
const FILES = ["./", "manifest.webmanifest", "{{files}}"].filter((name) => !name.endsWith("/codemirror.js")); // fetched when an editor opens

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  event.waitUntil(removeOldCaches().then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  if (method !== "GET" || !url.startsWith(registration.scope)) return;
  event.respondWith(mode === "navigate" ? loadPage(event.request) : loadFile(event.request));
});

async function removeOldCaches() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("lares-") && name !== CACHE).map((name) => caches.delete(name)));
}

// Fetch the page from the hub, so that a new version is visible at once. If the hub does not answer, use the cache.
async function loadPage(request) {
  try {
    return await fetch(request, { signal: AbortSignal.timeout(4000) });
  } catch {
    return (await caches.match("./")) ?? Response.error();
  }
}

async function loadFile(request) {
  return (await caches.match(request)) ?? fetch(request);
}
