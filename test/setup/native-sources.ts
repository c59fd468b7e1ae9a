import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';
import type { Plugin } from 'vitest/config';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folders = ['src', 'oracles', 'kernels', 'properties'];
/** The folders lie below it as below the root, so that modules find what lies beside them, and above. */
const compiled = join(root, '.vitest');

/** Where Node loads the modules from: what Vitest is to leave to it (`server.deps.external`). */
export const compiledModules = new RegExp(`/\\.vitest/(?:${folders.join('|')})/`);

function isSource(name: string): boolean {
  const [folder] = name.split('/');
  return folders.includes(folder) && !name.includes('/assembly/');
}

/** The compiled file of a source, by its path from the root on. */
export function compiledPath(name: string): string {
  return join(compiled, name.replace(/\.ts$/, '.js')).split(sep).join('/');
}

function nameOf(path: string): string {
  return relative(root, path).split(sep).join('/');
}

/** The names of all sources and of the data beside them, by their hashes. */
function hashSources(): Record<string, string> {
  const entries = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true }),
  );
  const names = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => nameOf(join(parentPath, name)))
    .filter(isSource);
  return Object.fromEntries(
    names.map((name) => {
      const text = readFileSync(join(root, name));
      return [name, createHash('sha1').update(text).digest('base64')];
    }),
  );
}

/** Writes a file that others may be reading: they find the old one or the new one. */
function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const beside = `${path}.${process.pid}`;
  writeFileSync(beside, text);
  renameSync(beside, path);
}

async function compile(name: string): Promise<void> {
  const path = join(root, name);
  const text = readFileSync(path, 'utf8');
  if (!name.endsWith('.ts')) return write(compiledPath(name), text);
  const { code, map } = await transformWithOxc(text, path, { sourcemap: true });
  const mapping = Buffer.from(JSON.stringify(map)).toString('base64');
  const url = `data:application/json;base64,${mapping}`;
  write(compiledPath(name), `${code}\n//# sourceMappingURL=${url}\n`);
}

/** Compiles the sources that have changed since the last time, and removes what has no source any more. */
export async function compileSources(): Promise<void> {
  const list = join(compiled, 'sources.json');
  let before: Record<string, string> = {};
  try {
    before = JSON.parse(readFileSync(list, 'utf8')) as Record<string, string>;
  } catch {
    // Nothing is compiled yet.
  }
  const now = hashSources();
  const names = Object.keys(now);
  await Promise.all(names.filter((name) => before[name] !== now[name]).map(compile));
  for (const name of Object.keys(before))
    if (!(name in now)) rmSync(compiledPath(name), { force: true });
  write(list, JSON.stringify(now));
}

/**
 * Lets tests import the sources as Node loads them, compiled by the global setup. What Vitest loads itself it
 * rewrites: each use of an import becomes a look-up through the index files between, which makes calls in inner loops ten
 * times as slow, and each module a question to another process. In a run that watches the files it does so still,
 * since only then it sees which of them a test uses.
 */
export function nativeSources(): Plugin {
  let isWatching = false;
  return {
    name: 'native-sources',
    enforce: 'pre',
    configureVitest: ({ vitest }) => {
      isWatching = vitest.config.watch;
    },
    resolveId: (source, importer) => {
      if (isWatching || importer === undefined || !source.startsWith('.')) return null;
      const name = nameOf(join(dirname(importer), source));
      return isSource(name) ? compiledPath(name) : null;
    },
  };
}
