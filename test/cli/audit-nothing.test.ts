import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { judgeOutputs } from '../../src/audit/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { type AuditReport } from '../../src/report/json/index.js';
import { validateReport } from '../../src/report/validation/index.js';
import { encode } from '../audit/damage.js';
import { runPlainKernel, toFormat } from '../audit/declared-kernel.js';
import { filledProblem, pseudorandom, tensor } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const audit = (...args: string[]) => runInProcess('audit', ...args, '--no-techniques');

const folder = await mkdtemp(join(tmpdir(), 'flashproof-nothing-'));
const at = (name: string) => join(folder, `${name}.safetensors`);

/** Writes a problem with what a kernel gave, and its settings. */
async function write(name: string, problem: Problem, outputs: Readonly<Record<string, Tensor>>) {
  const { q, k, v, scale, causal } = problem;
  const settings = { scale: String(scale), causal: String(causal) };
  await writeSafetensors(at(name), { q, k, v, ...outputs }, settings);
}

const zeros = (...shape: number[]) => tensor('bf16', shape, () => 0);

/** The keys of a range, as a problem of their own. */
function onKeys(problem: Problem, begin: number, end: number): Problem {
  const cut = ({ format, shape, data }: Tensor): Tensor => {
    const [batch = 1, heads = 1, rows = 1, dim = 1] = shape;
    const pieces = Array.from({ length: batch * heads }, (_, head) =>
      [...data.subarray((head * rows + begin) * dim, (head * rows + end) * dim)].map(Number),
    );
    const kept = data.slice(0, pieces.flat().length);
    kept.set(pieces.flat() as never);
    return { format, shape: [batch, heads, end - begin, dim], data: kept };
  };
  return { ...problem, k: cut(problem.k), v: cut(problem.v) };
}

/** One tensor of several, with their number in front. */
function stacked(parts: readonly Tensor[]): Tensor {
  const values = parts.flatMap(({ data }) => [...data].map(Number));
  return {
    format: 'fp32',
    shape: [parts.length, ...parts[0]!.shape],
    data: Float32Array.from(values),
  };
}

const frame = { format: 'bf16', heads: 2, queries: 40, keys: 64, dim: 16 } as const;
const problem = filledProblem(frame, pseudorandom(5), { scale: 1 });
const exact = attentionOracle(problem).quantities;
const good = {
  out: encode(exact.out.values, 'bf16', [1, 2, 40, 16]),
  lse: encode(exact.lse.values, 'fp32', [1, 2, 40]),
};
const halves = [
  [0, 32],
  [32, 64],
] as const;

beforeAll(async () => {
  await write('good', problem, good);
  const empty = filledProblem({ ...frame, queries: 0 }, pseudorandom(5));
  await write('no-queries', empty, {
    out: zeros(1, 2, 0, 16),
    out_partial: zeros(2, 1, 2, 0, 16),
  });
  await write('no-keys', filledProblem({ ...frame, keys: 0 }, pseudorandom(5)), {
    out: zeros(1, 2, 40, 16),
  });
  await write('no-splits', problem, { ...good, out_partial: zeros(0, 1, 2, 40, 16) });
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

describe('where there is nothing to judge', () => {
  it('an audit is no pass, of one file and of several', async () => {
    const alone = await audit(at('no-queries'), '--quiet', '--compare', 'same=:out');
    expect(alone).toMatchObject({
      status: 1,
      stdout: 'NOT JUDGED: the output has no elements.\n',
    });
    const both = await audit(at('no-queries'), at('no-queries'), at('good'), '--quiet');
    expect(both.status).toBe(1);
    expect(both.stdout).toBe('NOT JUDGED: 1 file has nothing to judge, 1 file passes.\n');
  });

  it('parts without rows are not judged either, and not called wrong', async () => {
    const { stdout } = await audit(at('no-queries'), '--json', '-');
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    expect(report.verdict.findings).toEqual([]);
    expect(report.verdict.notes).toContain(
      'not judged: parts 0 to 1, since the output has no elements',
    );
  });

  it('compared outputs have the word of their verdicts', async () => {
    const { stdout } = await audit(at('no-queries'), '--compare', 'same=:out');
    expect(stdout).toMatch(/^same .* NOT JUDGED$/m);
    expect(stdout).not.toContain('FAIL');
  });

  it('a pass of rows without keys says that they must only be 0', async () => {
    const { status, stdout } = await audit(at('no-keys'), '--quiet');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^PASS: .*; no row sees a key, so that it must only be 0\.$/m);
    expect((await audit(at('good'), '--quiet')).stdout).not.toContain('must only');
  });

  it('no splits are refused', async () => {
    expect(await refusal('audit', at('no-splits'))).toMatch(
      /^out_partial has shape \[0, 1, 2, 40, 16\], which is no split; give one/,
    );
  });
});

describe('parts of a split problem', () => {
  /** Both halves of the keys, by a plain kernel, with scores in bf16 where it declares that. */
  const parts = (declared: boolean) =>
    halves.map(([begin, end]) =>
      runPlainKernel(onKeys(problem, begin, end), () => ({
        outputFormat: 'fp32',
        output: Math.fround,
        ...(declared ? { score: toFormat('bf16') } : {}),
      })),
    );

  const merged = (given: ReturnType<typeof parts>) => {
    const [a, b] = given.map(({ out, lse }) =>
      [out.data, lse!.data].map((d) => [...d].map(Number)),
    );
    const out = new Float64Array(a![0]!.length);
    const lse = new Float64Array(a![1]!.length);
    lse.forEach((_, row) => {
      const [x, y] = [a![1]![row]!, b![1]![row]!];
      lse[row] = Math.max(x, y) + Math.log1p(Math.exp(-Math.abs(x - y)));
      const weight = 1 / (1 + Math.exp(y - x));
      for (let i = row * 16; i < (row + 1) * 16; i++)
        out[i] = weight * a![0]![i]! + (1 - weight) * b![0]![i]!;
    });
    return {
      out: encode(out, 'bf16', [1, 2, 40, 16]),
      lse: encode(lse, 'fp32', [1, 2, 40]),
      out_partial: stacked(given.map((part) => part.out)),
      lse_partial: stacked(given.map(({ lse }) => lse!)),
    };
  };

  inTurn('are judged by the premises of the whole', async () => {
    await write('declared', problem, merged(parts(true)));
    const [first] = parts(true);
    const undeclared = judgeOutputs(onKeys(problem, 0, 32), first!, { diagnose: false });
    expect(undeclared.verdict.pass).toBe(false);
    const declared = await audit(at('declared'), '--quiet', '--premise', 'scores=bf16');
    expect(declared).toMatchObject({ status: 0 });
  });

  inTurn('are judged in the rows of a sample, and fail where one of these is wrong', async () => {
    const right = merged(parts(false));
    await write('split', problem, right);
    const sample = ['--rows', '20', '--seed', '1', '--json', '-'];
    const { stdout } = await audit(at('split'), ...sample);
    const report = JSON.parse(stdout) as AuditReport;
    await validateReport(report);
    expect(report.verdict.pass).toBe(true);
    expect(report.sample).toMatchObject({ rows: 20 });
    expect(report.splits!.parts.map(({ pass }) => pass)).toEqual([true, true]);
    expect(report.splits!.merge!.pass).toBe(true);
    // The first row of a head is in every sample.
    const data = right.out_partial.data.slice();
    data[(2 * 40 + 40) * 16] = 9;
    await write('wrong', problem, { ...right, out_partial: { ...right.out_partial, data } });
    const wrong = await audit(at('wrong'), ...sample);
    expect(wrong.status).toBe(1);
    const failing = JSON.parse(wrong.stdout) as AuditReport;
    expect(failing.splits!.parts.map(({ pass }) => pass)).toEqual([true, false]);
  });

  it('are those of the outputs in their file, not of another kernel', async () => {
    await write('split', problem, merged(parts(false)));
    const other = await audit(
      at('split'),
      '--kernel',
      'naive-input',
      '--threads',
      '1',
      '--json',
      '-',
    );
    const report = JSON.parse(other.stdout) as AuditReport;
    expect(report.verdict.pass).toBe(true);
    expect(report.splits).toBeNull();
    const args = ['audit', at('split'), '--kernel', 'naive-input', '--out-partial', ':out_partial'];
    expect(await refusal(...args)).toMatch(/^--out-partial is of outputs in files; leave out/);
  });
});
