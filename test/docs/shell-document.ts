import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block of a Markdown document. */
export interface Block {
  readonly language: string;
  readonly text: string;
  /** Of the fence, from 1. */
  readonly line: number;
}

/** Every fenced block of a document, in order. */
export function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1],
    text: match[2],
    line: markdown.slice(0, match.index).split('\n').length,
  }));
}

/** A command block, and what the document says that it prints. */
export interface ShownCommand extends Block {
  /** Null where the document shows nothing. */
  readonly shown: string | null;
}

/**
 * The `sh` blocks of a document. Every one is run by a test; commands that cannot be (they need a GPU, or
 * a package that is not here) stand in blocks of another language. A block without a language that
 * follows one is what it prints, with a line `…` for lines left out.
 */
export function commandsOf(markdown: string): ShownCommand[] {
  const blocks = blocksOf(markdown);
  return blocks.flatMap((block, index) => {
    if (block.language !== 'sh') return [];
    const next = blocks[index + 1];
    return [{ ...block, shown: next?.language === '' ? next.text : null }];
  });
}

/** Files that a document shows: blocks whose first line is a comment that holds nothing but a file name. */
export function filesOf(markdown: string): { readonly name: string; readonly text: string }[] {
  return blocksOf(markdown).flatMap(({ text }) => {
    const name = /^(?:#|\/\/) ([\w./-]+\.\w+)\n/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, text }];
  });
}

/**
 * A new folder in which a document's commands run as in a clone: with `fixtures` and `examples`, and an
 * `npx` that knows flashproof, built in `dist`, and nothing else.
 */
export function createWorkspace(dist: string, markdown: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'flashproof-docs-'));
  for (const name of ['fixtures', 'examples']) symlinkSync(join(root, name), join(folder, name));
  for (const { name, text } of filesOf(markdown)) writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, 'bin'));
  const npx = join(folder, 'bin', 'npx');
  writeFileSync(
    npx,
    `#!/bin/sh
[ "$1" = flashproof ] || { echo "npx $1 is not run in a test" >&2; exit 127; }
shift
exec '${process.execPath}' '${join(dist, 'src/cli/main.js')}' "$@"
`,
  );
  chmodSync(npx, 0o755);
  return folder;
}

/** Runs the text of a block with bash in a workspace, from the first line to the first that fails. */
export function runBlock(workspace: string, text: string) {
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-euo', 'pipefail', '-c', text], {
    cwd: workspace,
    encoding: 'utf8',
    env: {
      ...process.env,
      PATH: join(workspace, 'bin') + delimiter + process.env.PATH,
      NO_COLOR: '1',
      GITHUB_ACTIONS: '',
      PYTHONDONTWRITEBYTECODE: '1',
    },
  });
  return { status, stdout, stderr };
}

/** A line without what differs from run to run: durations, moments, the folder of temporary files. */
function steady(line: string): string {
  return line
    .replaceAll(/\d[\d.]* s\b/g, '# s')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<moment>')
    .trimEnd();
}

/** Whether a shown line is the printed one, or the part of it before its final `…`. */
function fits(shown: string, printed: string): boolean {
  return shown.endsWith('…') ? printed.startsWith(shown.slice(0, -1)) : printed === shown;
}

/**
 * The first line that a document shows and its command does not print, at its place; null when all is
 * as shown. A line `…` stands for any number of lines, a `…` at the end of a line for the rest of it.
 */
export function firstLineNotPrinted(shown: string, printed: string): string | null {
  const actual = printed.trimEnd().split('\n').map(steady);
  let next = 0;
  let maySkip = false;
  for (const line of shown.trimEnd().split('\n').map(steady)) {
    if (line === '…') {
      maySkip = true;
      continue;
    }
    const found = actual.findIndex(
      (text, at) => at >= next && (maySkip || at === next) && fits(line, text),
    );
    if (found < 0) return line;
    next = found + 1;
    maySkip = false;
  }
  return next < actual.length && !maySkip ? `(the end; printed next: ${actual[next]})` : null;
}

/** The text of a document below docs/, or of another file of the repository. */
export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
