/* The service worker: keeps the files of this build, and answers with them. */
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
  const answer = caches
    .open(name)
    .then((cache) => cache.match(event.request, { ignoreSearch: true }))
    .then((kept) => kept ?? fetch(event.request));
  event.respondWith(answer);
});
