import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import { emulate } from '../../src/emulate/index.js';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import { writeRawTensors, writeSafetensors } from '../../src/io/index.js';
import { writeNpy } from '../io/write-npy.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { encode } from '../audit/damage.js';
import { normalCase } from '../audit/gradients/gradient-case.js';
import { turns } from '../setup/turns.js';
import { unpackRecurrence } from '../fixtures/recurrent-captures.js';
import { smallTensor, writeLaunch, x } from './small-launch.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-help-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Thrown where the command line would end the process. */
class Stopped extends Error {
  constructor(readonly status: number) {
    super();
  }
}

const createQuietProgram = () =>
  createProgram(({ exitCode }) => {
    throw new Stopped(exitCode);
  });

/** Runs the command line in this process: what it wrote on standard output, and its exit status. */
async function run(words: readonly string[]): Promise<{ stdout: string; status: number }> {
  let stdout = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += String(text);
    return true;
  });
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    await createQuietProgram().parseAsync(words, { from: 'user' });
    return { stdout, status: Number(process.exitCode ?? 0) };
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    return { stdout, status: error.status };
  } finally {
    process.exitCode = before;
    spy.mockRestore();
  }
}

const names = createQuietProgram().commands.map((command) => command.name());
const helps = new Map<string, string>();
beforeAll(async () => {
  for (const name of names) helps.set(name, (await run([name, '--help'])).stdout);
  helps.set('', (await run(['--help'])).stdout);
});

/** The commands that a help text shows. */
const examplesOf = (help: string) =>
  [...help.replaceAll(/ \\\n +/g, ' ').matchAll(/^ {2}(flashproof .*)$/gm)].map((m) => m[1]);

describe('every help text', () => {
  it('has examples, its exit statuses, and lines of 80 columns', () => {
    expect(helps.size).toBe(names.length + 1);
    for (const [name, help] of helps) {
      expect(examplesOf(help).length, name).toBeGreaterThan(1);
      expect(help, name).toMatch(/^Exit status: 0 /m);
      expect(help.split('\n').filter((line) => [...line].length > 80)).toEqual([]);
    }
  });

  it('has examples of its own command', () => {
    for (const name of names) {
      const own = examplesOf(helps.get(name)!).filter((example) =>
        example.startsWith(`flashproof ${name}`),
      );
      expect(own, name).not.toEqual([]);
    }
  });
});

describe('topics of a help', () => {
  const ofAudit = async (...words: string[]) => (await run(['audit', '--help', ...words])).stdout;

  it('leave the usual options on a page, and have every other one once', async () => {
    const [short, all] = [await ofAudit(), await ofAudit('all')];
    expect(short.split('\n').length).toBeLessThan(80);
    const flags = (text: string) =>
      [...text.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map((m) => m[1]!);
    const topics = [...short.matchAll(/^ {2}(\w+) {2,}[A-Z]/gm)].map((m) => m[1]!);
    expect(topics).toContain('gradients');
    const shown = [flags(short)];
    for (const topic of topics) shown.push(flags(await ofAudit(topic)));
    expect(new Set(shown.flat()).size).toBe(shown.flat().length);
    expect(shown.flat().toSorted()).toEqual(flags(all).toSorted());
  });

  it.each(['audit', 'bound', 'check', 'emulate', 'invariance'])(
    'of %s has lines of 80 columns where everything is asked for',
    async (name) => {
      const { stdout } = await run([name, '--help', 'all']);
      expect(stdout.split('\n').filter((line) => [...line].length > 80)).toEqual([]);
      expect(examplesOf(stdout)).toEqual(examplesOf(helps.get(name)!));
    },
  );
});

describe('the help of a command', () => {
  it('is that of help and its name, with a topic too', async () => {
    for (const name of names) expect((await run(['help', name])).stdout).toBe(helps.get(name));
    expect((await run(['--help', 'audit'])).stdout).toBe(helps.get('audit'));
    expect((await run(['help'])).stdout).toBe(helps.get(''));
    const topic = await run(['audit', '--help', 'gradients']);
    expect(await run(['help', 'audit', 'gradients'])).toEqual(topic);
    expect(topic.stdout).not.toBe(helps.get('audit'));
  });

  it('is found by each topic that it shows', async () => {
    for (const [name, help] of helps) {
      const [, listed = ''] = /by flashproof \w+ --help <topic>:\n(.*?)\n\n/s.exec(help) ?? [];
      for (const [, topic] of listed.matchAll(/^ {2}(\w+) /gm)) {
        if (topic === 'all') continue;
        const spy = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
        await run(['help', topic!]);
        expect(spy.mock.calls.join()).toContain(`flashproof ${name} --help ${topic}`);
        spy.mockRestore();
      }
    }
  });
});

describe("the parser's refusals", () => {
  it.each([
    [['audit'], "flashproof: missing required argument 'problem'; see flashproof audit --help\n"],
    [['chek'], "flashproof: unknown command 'chek'; did you mean check; see flashproof --help\n"],
    [
      ['check', '--run', '3'],
      "flashproof: unknown option '--run'; did you mean --runs; see flashproof check --help\n",
    ],
    [
      ['help', 'gradients'],
      "flashproof: unknown command 'gradients'; did you mean flashproof audit --help gradients or flashproof bound --help gradients; see flashproof --help\n",
    ],
    [
      ['--help', 'promise'],
      "flashproof: unknown command 'promise'; did you mean flashproof check --help promises; see flashproof --help\n",
    ],
    [
      ['help', 'audi'],
      "flashproof: unknown command 'audi'; did you mean flashproof audit --help; see flashproof --help\n",
    ],
    [['-h', 'nonsense'], "flashproof: unknown command 'nonsense'; see flashproof --help\n"],
    [
      ['audit', '--help', 'gradient'],
      "flashproof: unknown topic 'gradient'; did you mean flashproof audit --help gradients; see flashproof --help\n",
    ],
  ])('%j is one line, and nothing beside it', async (words, line) => {
    let said = '';
    const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      said += String(text);
      return true;
    });
    const { stdout, status } = await run(words);
    spy.mockRestore();
    expect([said, stdout, status]).toEqual([line, '', 1]);
  });
});

/** Examples that are not run here, and what does instead. */
const elsewhere: readonly (readonly [pattern: RegExp, because: string])[] = [
  [/python/, 'needs Python: examples/python'],
  [/--launch|--problem/, 'needs a template: test/cli/audit-launch.test.ts'],
  [/^flashproof serve/, 'reads standard input: test/cli/serve.test.ts'],
  [/--exhaustive|^flashproof (bench|profile (exp2|split|rescale))/, 'takes minutes'],
  [/^flashproof check --kernel fa4$/, 'takes a minute'],
  [/--shard|^flashproof merge/, 'takes minutes: test/cli/campaign.test.ts'],
  [/--variant causal-one-more/, 'tries every property: test/cli/check.test.ts tries some'],
  [/^flashproof conform/, 'starts worker threads, from dist only: test/cli/conform.test.ts'],
  [/^flashproof completion/, 'writes to the home folder: test/cli/completion.test.ts'],
  [/--machine(?! --no-races)/, 'as below, several times over: test/cli/emulate-machine.test.ts'],
];

/** The words of a command without the tool's name, with its files in the scratch folder. */
function wordsOf(command: string): string[] {
  const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);
  return words
    .slice(1)
    .map((word) => (/\.(safetensors|npy|json|svg|html)$/.test(word) ? join(scratch, word) : word));
}

describe('the examples', () => {
  beforeAll(async () => {
    let state = 1;
    const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32 - 0.5;
    const tensor = (rows: number): Tensor => ({
      format: 'bf16',
      shape: [1, 1, rows, 64],
      data: encodeFromFloat64(
        formats.bf16,
        Float64Array.from({ length: rows * 64 }, () => 4 * random()),
      ),
    });
    const [q, k, v] = [tensor(32), tensor(48), tensor(48)];
    const problem: Problem = {
      q,
      k,
      v,
      scale: 0.125,
      causal: false,
      window: null,
      softcap: null,
    };
    const { out, lse } = await emulate(problem, 'fa4');
    await writeSafetensors(join(scratch, 'problem.safetensors'), { q, k, v });
    const outputs = { out, lse, mine: out, torch: out };
    await writeSafetensors(join(scratch, 'dump.safetensors'), { q, k, v, ...outputs });
    mkdirSync(join(scratch, 'dumps'));
    for (const name of ['one', 'two'])
      await writeSafetensors(join(scratch, `dumps/${name}.safetensors`), { q, k, v, out, lse });
    const { exact, shapes, ...training } = normalCase({ queries: 16, keys: 16, dim: 8 }, 1);
    await writeSafetensors(join(scratch, 'training.safetensors'), {
      q: training.problem.q,
      k: training.problem.k,
      v: training.problem.v,
      do: training.dout,
      dq: encode(exact.dq, 'bf16', shapes.dq),
      dk: encode(exact.dk, 'bf16', shapes.dk),
      dv: encode(exact.dv, 'bf16', shapes.dv),
    });
    const linear = unpackRecurrence('simple-gla-packed.safetensors');
    writeFileSync(join(scratch, 'linear.safetensors'), linear);
    const tensors = [smallTensor('x', x), smallTensor('y', x)];
    await writeLaunch(scratch, tensors);
    await writeRawTensors(join(scratch, 'other.safetensors'), tensors);
    const causal = await emulate({ ...problem, causal: true }, 'fa4');
    await writeNpy(join(scratch, 'kernel.npy'), causal.out);
  });

  it('leaves out only what there is', () => {
    const all = [...helps.values()].flatMap(examplesOf);
    for (const [pattern] of elsewhere) expect(all.some((text) => pattern.test(text))).toBe(true);
  });

  inTurn('run, and give what they name', async () => {
    const ran: string[] = [];
    const examples = [...helps.values()].flatMap(examplesOf);
    for (const example of new Set(examples)) {
      if (elsewhere.some(([pattern]) => pattern.test(example))) continue;
      const words = wordsOf(example);
      // Worker threads run from dist only.
      if (/^flashproof (emulate (?!list)|audit .*--kernel)/.test(example))
        words.push('--threads', '1');
      if (words[0] === 'check' && !words.includes('--list'))
        // Enough to see the command work; the last of an option counts.
        words.push('--runs', '2', '--seed', '1', '--save-dir', join(scratch, 'failures'));
      const { stdout, status } = await run(words);
      expect(status, example).toBe(0);
      expect(stdout.length, example).toBeGreaterThan(100);
      for (const [, file] of example.matchAll(/--(?:save|json|svg|trace|html) (\S+)/g))
        if (file !== '-') expect(existsSync(join(scratch, file)), example).toBe(true);
      ran.push(example);
    }
    expect(ran.length).toBeGreaterThan(12);
  });
});
