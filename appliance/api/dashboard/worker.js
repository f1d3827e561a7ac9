// The service worker: keeps the page's files, so that it opens while the hub cannot be reached. It never keeps data.
// Browsers run it where the page came over https, or from the box itself.

const CACHE = "lares-{{version}}";
const FILES = ["./", "manifest.webmanifest", "{{files}}"].filter((name) => !name.endsWith("/codemirror.js")); // fetched once an editor opens

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

// The hub's page while the hub answers, so that a new version is seen at once; else the one that was kept.
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
