import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readDocument } from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readDocument('docs/reference/releases.md');

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | object>>;
}
interface Schema {
  readonly properties: { readonly schemaVersion: { readonly const: number } };
}

/** The rows of the table of entry points: what is imported, its standing, and what it is. */
const rows = [...page.matchAll(/^\| `(flashproof[^`]*)` *\| (\w+) *\| ([^|]*?) *\|$/gm)].map(
  ([, entry = '', standing = '', what = '']) => ({ entry, standing, what }),
);

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(`${root}/${path}`, 'utf8'));
}

describe('docs/reference/releases', () => {
  const { exports, name } = readJson('package.json') as Manifest;
  const entries = Object.keys(exports).map((path) => path.replace('.', name));

  it('says of every entry point of the package whether it is stable, and of nothing else', () => {
    const ofNpm = rows.filter(({ entry }) => !entry.slice(name.length).startsWith('.'));
    const named = new Set(ofNpm.map(({ entry }) => entry));
    expect([...named].sort()).toEqual(entries.sort());
    expect(rows.filter(({ standing }) => !/^(stable|experimental)$/.test(standing))).toEqual([]);
  });

  it('names the version of every schema', () => {
    for (const { entry, what } of rows.filter((row) => row.entry.endsWith('.schema.json'))) {
      const target = exports[entry.replace(name, '.')] as string;
      const { properties } = readJson(target.replace('./dist/', '')) as Schema;
      expect(what, entry).toMatch(new RegExp(`^version ${properties.schemaVersion.const}:`));
    }
  });

  it('names modules of Python that are there', () => {
    const modules = rows.filter(({ entry }) => entry.slice(name.length).startsWith('.'));
    expect(modules.length).toBeGreaterThan(0);
    const source = readFileSync(`${root}/python/flashproof/__init__.py`, 'utf8');
    for (const { entry } of modules) {
      const own = entry.slice(name.length + 1);
      const there = ['.py', '/__init__.py'].some((end) => {
        try {
          return readFileSync(`${root}/python/flashproof/${own}${end}`).length > 0;
        } catch {
          return source.includes(`    "${own}",`);
        }
      });
      expect(there, entry).toBe(true);
    }
  });
});
