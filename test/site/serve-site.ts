import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { builtDist } from '../setup/built-dist.js';

/** For the hook that builds the pages, and dist where it is older than the sources. In milliseconds. */
export const buildPatience = 420_000;

/** The browser that pages are tried in: the one that CHROMIUM names, else Debian's. */
export const chromiumPath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** Whether there is one; says so where there is none. */
export function hasChromium(): boolean {
  const isThere = existsSync(chromiumPath);
  if (!isThere)
    console.warn(
      `skipped: no browser at ${chromiumPath}; name one by CHROMIUM, or install chromium`,
    );
  return isThere;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
};

/** Builds the pages into a folder of their own; the emulated kernels of their examples are those of `dist`. */
export async function buildSite(): Promise<string> {
  await builtDist();
  const outDir = join(tmpdir(), `flashproof-site-${process.pid}`);
  const configFile = fileURLToPath(new URL('../../site/vite.config.ts', import.meta.url));
  await build({ configFile, logLevel: 'error', build: { outDir } });
  return outDir;
}

/** Serves a folder below a path of its own, as a project's page is; to be closed. */
export async function serveFolder(
  folder: string,
): Promise<{ readonly address: string; readonly close: () => void }> {
  const server: Server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    const inside = path.replace(/^\/project\//, '/').replace(/\/$/, '/index.html');
    const name = join(folder, normalize(inside));
    readFile(name).then(
      (content) => {
        const type = types[extname(name)] ?? 'application/octet-stream';
        response.writeHead(path.startsWith('/project/') ? 200 : 404, { 'content-type': type });
        response.end(content);
      },
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { address: `http://127.0.0.1:${port}/project/`, close: () => server.close() };
}
