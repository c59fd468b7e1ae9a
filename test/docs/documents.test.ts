import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtDist } from '../setup/built-dist.js';
import {
  commandsOf,
  createWorkspace,
  firstLineNotPrinted,
  readDocument,
  runBlock,
  type ShownCommand,
} from './shell-document.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Commands of the documents that no test of them runs, and what does. */
const elsewhere: Readonly<Record<string, string>> = {
  'npm ci\n': '.ci/run installs so',
};

/** Folders that are there once their commands have run. */
const madeByCommands = ['docs/api', 'site/dist'];

/** Every command is a process; a machine may have other work. In milliseconds. */
const patience = 180_000;

const hasNumpy = spawnSync('python3', ['-c', 'import numpy']).status === 0;
const hasBash = spawnSync('bash', ['-c', 'exit 0']).status === 0;

/** Documents whose commands are run, and whether they need numpy. */
const documents = [
  ['docs/guide/getting-started.md', false],
  ['docs/guide/auditing.md', true],
  ['docs/guide/ci.md', false],
  ['docs/reference/emulation.md', false],
  ['docs/guide/capture.md', false],
  ['docs/guide/compiled-kernels.md', false],
  ['docs/reference/certificates.md', false],
] as const;

/** Of these only what takes seconds and is shown with what it prints. */
const partlyRun = [
  ['README.md', false],
  ['docs/guide/tour.md', false],
  ['docs/reference/machine.md', false],
] as const;
const takesSeconds =
  /^((npm ci && |node fixtures\/(gradients|recurrent)\/unpack\.mjs [^&]*&& )?npx flashproof (audit|bound|emulate) [^\n]*\n)+$/;

function commandsRunOf(path: string): ShownCommand[] {
  const commands = commandsOf(readDocument(path));
  if (!partlyRun.some(([page]) => page === path))
    return commands.filter(({ text }) => !Object.hasOwn(elsewhere, text));
  return commands
    .filter(({ text, shown }) => shown !== null && takesSeconds.test(text))
    .map((command) => ({ ...command, text: command.text.replace('npm ci && ', '') }));
}

describe.runIf(hasBash).each([...documents, ...partlyRun])('%s', (path, needsNumpy) => {
  const markdown = readDocument(path);
  const commands = commandsRunOf(path);
  let workspace = '';
  beforeAll(async () => {
    workspace = createWorkspace(await builtDist(), markdown);
  });
  afterAll(() => rmSync(workspace, { recursive: true, force: true }));

  const run = it.runIf(hasNumpy || !needsNumpy);
  run('shows commands that run, and what they print', { timeout: patience }, () => {
    expect(commands.length).toBeGreaterThan(0);
    for (const { text, shown, line } of commands) {
      const { status, stdout, stderr: written } = runBlock(workspace, text);
      // What takes long on a busy machine says how far it is, every ten seconds.
      const stderr = written.replace(/^\w+: \d+ %, \d+ (s|min|h) left\n/gm, '');
      const place = `${path}:${line}\n${text}`;
      const expected = /^(FAIL|[1-9]\d* findings)/m.test(shown ?? '') ? 1 : 0;
      expect({ place, status, stderr }).toEqual({ place, status: expected, stderr: '' });
      if (shown === null) continue;
      const missing = firstLineNotPrinted(shown, stdout);
      expect(missing, `${place}\nprinted:\n${stdout}`).toBeNull();
    }
  });
});

describe('what a document shows', () => {
  const printed = 'one\ntwo 0.3 s\nthree\nfour\n';
  it('is compared line by line, times aside', () => {
    expect(firstLineNotPrinted(printed, printed)).toBeNull();
    expect(firstLineNotPrinted('one\ntwo 1.25 s\n…\n', printed)).toBeNull();
    expect(firstLineNotPrinted('…\nfour\n', printed)).toBeNull();
    expect(firstLineNotPrinted('one\n…\nfour\n', printed)).toBeNull();
    expect(firstLineNotPrinted('o…\ntwo…\n…\nfour\n', printed)).toBeNull();
    expect(firstLineNotPrinted('one\nfour\n', printed)).toBe('four');
    expect(firstLineNotPrinted('…\nthree\n…\ntwo 0.3 s\n', printed)).toBe('two # s');
    expect(firstLineNotPrinted('one\n', printed)).toMatch(/printed next: two/);
  });
});

describe('the documents', () => {
  const pages = [
    ...['README.md', 'CONTRIBUTING.md', 'examples/github-action/README.md'],
    ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md') && !name.startsWith('api'))
      .map((name) => `docs/${name.replaceAll('\\', '/')}`),
  ];

  it('stand on their shelves in the order of docs/README.md, as the site shows them', () => {
    const index = [...readDocument('docs/README.md').matchAll(/\]\(([^)]+\.md)\)/g)].map(
      ([, page]) => `docs/${page}`,
    );
    expect([...index, 'docs/README.md'].sort()).toEqual(
      pages.filter((page) => page.startsWith('docs/')).sort(),
    );
    const { projectDocuments } = JSON.parse(readDocument('site/typedoc.json')) as {
      readonly projectDocuments: readonly string[];
    };
    expect(projectDocuments).toEqual(index.map((page) => `../${page}`));
  });

  it.each([
    'README.md',
    'CONTRIBUTING.md',
    'docs/guide/extending.md',
    'docs/reference/architecture.md',
  ])('%s names files that there are', (page) => {
    const folders = 'src|test|oracles|properties|kernels|fixtures|scripts|python|site|docs';
    const paths = new RegExp(`\`((?:${folders})/[\\w./-]+)\``, 'g');
    const missing = [...readDocument(page).matchAll(paths)]
      .map(([, path]) => path)
      .filter((path) => !madeByCommands.includes(path) && !existsSync(join(root, path)));
    expect(missing).toEqual([]);
  });

  it.each(pages)('%s links to what there is', (page) => {
    const text = readDocument(page);
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path, anchor] = target.split('#');
      const file = path === '' ? page : normalize(join(dirname(page), path));
      expect(existsSync(join(root, file)), `${page} links to ${target}`).toBe(true);
      if (anchor === undefined || !file.endsWith('.md')) continue;
      const headings = [...readDocument(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
          .replaceAll(' ', '-'),
      );
      expect(headings, `${page} links to ${target}`).toContain(anchor);
    }
  });
});
