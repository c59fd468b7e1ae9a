/* The service worker: keeps the files of this build, and answers with them; examples from when they are first asked for. */
const files = __FILES__;
const name = __NAME__;

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches
      .open(name)
      .then((cache) => cache.addAll(files))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener('activate', (event) => {
  const removeOld = async () => {
    for (const key of await caches.keys())
      if (key.startsWith('flashproof-') && key !== name) await caches.delete(key);
    await self.clients.claim();
  };
  event.waitUntil(removeOld());
});

self.addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET') return;
  const answer = async () => {
    const cache = await caches.open(name);
    const kept = await cache.match(event.request, { ignoreSearch: true });
    if (kept !== undefined) return kept;
    const response = await fetch(event.request);
    if (response.ok && event.request.url.includes('/examples/'))
      await cache.put(event.request, response.clone());
    return response;
  };
  event.respondWith(answer());
});
