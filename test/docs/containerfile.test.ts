import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { readDocument } from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The instructions of a stage, continued lines joined. */
interface Stage {
  readonly from: string;
  readonly steps: readonly (readonly [instruction: string, words: string])[];
}

function stagesOf(text: string): Stage[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => /^([A-Z]+) (.*)$/.exec(line)!.slice(1) as [string, string]);
  const starts = lines.flatMap(([name], i) => (name === 'FROM' ? [i] : []));
  return starts.map((start, i) => ({
    from: lines[start][1],
    steps: lines.slice(start + 1, starts[i + 1]),
  }));
}

// No engine is asked: whether the image builds is for who has one.
it('Containerfile builds from the repository and runs the command without rights', () => {
  const [build, image] = stagesOf(readDocument('Containerfile'));
  const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
    readonly engines: { readonly node: string };
    readonly bin: Readonly<Record<string, string>>;
    readonly scripts: Readonly<Record<string, string>>;
  };
  const oldest = Number(/\d+/.exec(manifest.engines.node)![0]);
  for (const { from } of [build, image])
    expect(Number(/node:(\d+)-slim/.exec(from)![1])).toBeGreaterThanOrEqual(oldest);
  expect(existsSync(`${root}/package-lock.json`)).toBe(true);
  // npm ci runs it, so that what is packed has dist.
  expect(manifest.scripts['prepare']).toContain('build.mjs');
  const last = (name: string) => image.steps.filter(([step]) => step === name).at(-1)![1];
  expect(last('USER')).toBe('node');
  expect(image.steps.findIndex(([name]) => name === 'USER')).toBeGreaterThan(
    image.steps.findLastIndex(([name]) => name === 'RUN'),
  );
  expect(Object.keys(manifest.bin)).toContain(JSON.parse(last('ENTRYPOINT'))[0]);
  const ignored = readDocument('.containerignore').split('\n');
  expect(ignored).toEqual(expect.arrayContaining(['**/node_modules', '**/dist', '.git']));
});
