import { spawnSync } from 'node:child_process';
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

// No engine is asked: docs/guide/ci.md says how the image was built.
it('Containerfile builds from the repository and runs the command without rights', () => {
  const [build, image] = stagesOf(readDocument('Containerfile'));
  const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
    readonly name: string;
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
  // What the first stage packs is what the second installs.
  const [, folder] = /--pack-destination (\S+)/.exec(build.steps.at(-1)![1])!;
  const tarball = `${folder}/${manifest.name}-*.tgz`;
  const [[, copied], [, installed]] = image.steps;
  expect(copied).toBe(`--from=build ${tarball} ${folder}/`);
  expect(installed).toContain(`--global --no-fund --no-audit ${tarball} &&`);
});

it('the image is built from every file of the repository, and from nothing that was built or installed here', () => {
  const patterns = readDocument('.dockerignore').trim().split('\n');
  expect(patterns).toEqual(expect.arrayContaining(['**/node_modules', '**/dist', '.git']));
  // Docker's rules, as far as the file uses them: a name is one of the root, ** any folders, * any letters.
  const ignored = patterns.map(
    (pattern) =>
      new RegExp(
        `^${pattern
          .replaceAll('.', '\\.')
          .replaceAll(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(?:.*/)?'))}(?:/|$)`,
      ),
  );
  const isIgnored = (path: string) => ignored.some((pattern) => pattern.test(path));
  for (const path of [
    'dist/src/index.js',
    'site/dist/index.html',
    'examples/node-test/node_modules/x',
    'flashproof-0.1.0.tgz',
  ])
    expect(isIgnored(path), path).toBe(true);
  const { stdout, status } = spawnSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  expect(status).toBe(0);
  const tracked = stdout.split('\0').filter((path) => path !== '');
  expect(tracked).toContain('package-lock.json');
  expect(tracked.filter(isIgnored)).toEqual([]);
});
