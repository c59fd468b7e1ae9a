import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readDocument } from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly exports: Readonly<Record<string, string | object>>;
}

describe('docs/architecture', () => {
  it('shows the arrows that the lint enforces', () => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['scripts/documents/draw-architecture.mjs', '--print'],
      { cwd: root, encoding: 'utf8' },
    );
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const drawn = readDocument('docs/images/architecture.svg');
    expect(stdout, 'run node scripts/documents/draw-architecture.mjs').toBe(drawn);
  });

  it('names every entry point of the package', () => {
    const { exports } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as Manifest;
    const entries = Object.entries(exports)
      .filter(([, target]) => typeof target === 'object')
      .map(([name]) => name.replace('.', 'flashproof'));
    const named = [
      ...readDocument('docs/reference/architecture.md').matchAll(/^\| `(flashproof[^`]*)`/gm),
    ];
    expect(named.map(([, name]) => name).sort()).toEqual(entries.sort());
  });
});
