import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command, Option } from 'commander';
import { hostileNumbers, hostileTexts } from './hostile-values.js';
import type { Random } from './random.js';

/** Texts that name no file outside the folder that a command runs in; NUL cannot be an argument. */
const texts = hostileTexts.filter((text) => !/[/\0]|^\.\.?$/.test(text));

/** What is run as a kernel: nothing that does harm. */
const kernels = [
  'true',
  'exit 3',
  'cat',
  'echo {}',
  'no-such-command',
  'yes | head -9',
  'kill -9 $$',
];

/** Values that are right for some option, by which the parser is passed. */
const plausible = [
  ...[
    'fa4',
    'naive-fp32',
    'none',
    'in-order',
    'sm_90',
    'sm_100',
    'bf16',
    'bf16,fp16',
    '64',
    '1',
    '2',
  ],
  ...[
    '0.5',
    '-1,-1',
    '3,0',
    'bhsd',
    'bshd',
    'q=bf16',
    'out=fp32',
    'rescale.threshold=4',
    'exp2.degree=3',
  ],
  ...[
    'within-bound',
    'within-bound=bits',
    'normal',
    'exact',
    'problem.safetensors',
    ':out',
    ':lse',
  ],
  ...['out.json', '-', '.', 'missing/out.json', 'random:7', 'timed', '1e-9', 'practice'],
];

function valueOf(option: Option, random: Random): string {
  if (option.long === '--exec') return random.pick(kernels);
  return random.chance(0.5) ? random.pick(plausible) : random.pick([...texts, ...hostileNumbers]);
}

/** A command line of a program: some of a command's options, with values that may be hostile. */
export function hostileCommandLine(program: Command, random: Random): string[] {
  // A benchmark takes minutes, whatever its options; completion has none.
  const command = random.pick(
    program.commands.filter((known) => known.name() !== 'bench' && known.options.length > 0),
  );
  const words = command.registeredArguments.flatMap(() =>
    random.chance(0.9)
      ? [
          random.pick([
            'problem.safetensors',
            'problem.safetensors',
            'fa4',
            'list',
            'bash',
            ...texts,
          ]),
        ]
      : [],
  );
  // What is emulated needs its model first, or every such line would end there.
  if (command.name() === 'emulate' && random.chance(0.7))
    words.splice(0, words.length, random.pick(['fa4', 'naive-fp32']), 'problem.safetensors');
  for (let count = random.below(5); count > 0; count--) {
    const option = random.pick(command.options);
    words.push(option.long ?? option.short!);
    if (option.required || (option.optional && random.chance(0.5)))
      if (random.chance(0.97)) words.push(valueOf(option, random));
  }
  if (random.chance(0.05)) words.splice(random.below(words.length), 0, random.pick(texts));
  return [command.name(), ...words];
}

/** What came of a command line. */
export interface CommandLineOutcome {
  /** Null when it was still at work when the time was up. */
  readonly status: number | null;
  /** What is wrong with how it ended; empty for nothing. */
  readonly faults: readonly string[];
}

/** What is wrong with the files that a command left. */
function fileFaults(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    if (name.startsWith('.flashproof-')) return [`${name} is left behind`];
    if (name !== 'out.json') return [];
    try {
      JSON.parse(readFileSync(join(folder, name), 'utf8'));
      return [];
    } catch (error) {
      return [`${name} is torn: ${String(error)}`];
    }
  });
}

/** One line: what is wrong, where, and how to mend it. */
const refusal = /^flashproof: [^\n]+\n$/;

/**
 * Runs a command line in a folder and judges how it ends: with status 0, 1 or 2, without a stack trace,
 * on status 2 with one line that says why, and with nothing half-written.
 */
export async function runCommandLine(
  main: string,
  words: readonly string[],
  folder: string,
  milliseconds: number,
): Promise<CommandLineOutcome> {
  const child = spawn(process.execPath, ['--max-old-space-size=512', main, ...words], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (bytes: Buffer) => {
    if (stderr.length < 1e5) stderr += bytes.toString();
  });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGTERM');
  }, milliseconds);
  const [status, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.once('close', (...how) => resolve(how)),
  );
  clearTimeout(timer);
  if (isLate) return { status: null, faults: [] };
  const faults = fileFaults(folder);
  if (status === null || status > 2) faults.push(`ended by ${signal ?? status}: ${stderr}`);
  if (/^\s+at /m.test(stderr) || stderr.includes('internal error')) faults.push(stderr);
  const own = stderr.replace(/^(?!flashproof: |error: |\(flashproof).*\n/gm, '');
  if (status === 2 && !refusal.test(own)) faults.push(`refused by ${JSON.stringify(stderr)}`);
  return { status, faults };
}
