import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The modules that a module loads with itself, types aside; others are loaded when they are needed. */
function importsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  const statements = /^(?:import|export)\s(?!type\b)(?:[^;'"]*?from\s+)?'(\.[^']+)'/gm;
  return [...text.matchAll(statements)].map(([, target]) =>
    join(dirname(path), target!.replace(/\.js$/, '.ts')),
  );
}

/** Everything that is loaded with a module, itself included. */
function loadedWith(start: string): Set<string> {
  const loaded = new Set([start]);
  for (const path of loaded) for (const target of importsOf(path)) loaded.add(target);
  return loaded;
}

it('every command starts without the modules that only some commands need', () => {
  const loaded = [...loadedWith(join(root, 'src/cli/main.ts'))].map((path) => relative(root, path));
  expect(loaded).toContain(join('src', 'cli', 'emulate', 'options.ts'));
  const allowed = /^src[/\\](cli[/\\][\w/\\-]+|reuse|request-error)\.ts$/;
  expect(loaded.filter((path) => !allowed.test(path))).toEqual([]);
});
