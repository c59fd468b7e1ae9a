import { mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findRecurrentModel, roundingTo, runRecurrence } from '../../kernels/index.js';
import { decodeTensor, type Tensor } from '../../src/formats/index.js';
import { writeRawTensors } from '../../src/io/index.js';
import type { RecurrentProblem } from '../../src/problem/index.js';
import type { RecurrentReport } from '../../src/report/json/index.js';
import { validateFileReport } from '../../src/report/validation/index.js';
import { mamba2Problem, type DrawnMamba2 } from '../setup/mamba2-problems.js';
import { tensor } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const folder = mkdtempSync(join(tmpdir(), 'flashproof-audit-mamba2-'));
const at = (name: string) => join(folder, name);
afterAll(() => rm(folder, { recursive: true }));

const drawn: DrawnMamba2 = {
  seed: 31,
  lengths: [70, 40],
  groups: 2,
  stateDim: 8,
  headDim: 4,
  dtLimit: [0.01, 0.5],
};

/** States [sequences, heads, N, P] as Mamba-2's kernels have them, [sequences, heads, P, N]. */
function valueFirst({ format, shape, data }: Tensor): Tensor {
  const [sequences, heads, n, p] = shape;
  const values = decodeTensor({ format, shape, data });
  return tensor(format, [sequences, heads, p, n], (i) => {
    const [state, within] = [Math.floor(i / (n * p)), i % (n * p)];
    return values[state * n * p + (within % n) * p + Math.floor(within / n)];
  });
}

const dtypes = { fp32: 'F32', bf16: 'BF16', fp64: 'F64' } as Readonly<Record<string, string>>;

/** Writes a problem and what a chunked kernel gives, by Mamba-2's names. */
async function written(
  name: string,
  problem: RecurrentProblem,
  more: Readonly<Record<string, Tensor | undefined>> = {},
  notes: Readonly<Record<string, string>> = {},
): Promise<string> {
  const arithmetic = findRecurrentModel('chunked')!.arithmetic(problem);
  const { out, final_state } = runRecurrence(problem, arithmetic, roundingTo(arithmetic));
  const { q: C, k: B, v: x, initialState, cuSeqlens } = problem;
  const { dt, a: A, d: D, z, dtBias, dtSoftplus, dtLimit } = problem.mamba2!;
  const states = initialState!.shape;
  const tensors: Readonly<Record<string, Tensor | undefined>> = {
    C,
    B,
    x,
    dt,
    A,
    D,
    z,
    dt_bias: dtBias,
    initial_states: initialState && valueFirst(initialState),
    out: tensor('bf16', x.shape, (i) => out![i]),
    final_states: valueFirst(tensor('fp32', states, (i) => final_state![i])),
    ...more,
  };
  const raw = Object.entries(tensors).flatMap(([one, given]) =>
    given === undefined
      ? []
      : [
          {
            name: one,
            dtype: dtypes[given.format],
            shape: given.shape,
            bytes: new Uint8Array(given.data.buffer, given.data.byteOffset, given.data.byteLength),
          },
        ],
  );
  const numbers = Int32Array.from({ length: 110 }, (_, i) => (i < 70 ? 0 : 1));
  const places =
    notes.cu_seqlens === ''
      ? [{ name: 'seq_idx', dtype: 'I32', shape: [1, 110], bytes: new Uint8Array(numbers.buffer) }]
      : [];
  const { cu_seqlens, ...others } = { cu_seqlens: (cuSeqlens ?? []).join(','), ...notes };
  await writeRawTensors(at(name), [...raw, ...places] as never, {
    family: 'mamba2',
    dt_softplus: String(dtSoftplus),
    dt_limit: dtLimit.join(','),
    ...(cu_seqlens === '' ? {} : { cu_seqlens }),
    ...others,
  });
  return at(name);
}

describe('an audit of a file of Mamba-2', () => {
  it('judges its output and final states by their names', async () => {
    const path = await written('right.safetensors', mamba2Problem(drawn), {
      unheard: tensor('fp32', [2], () => 1),
    });
    const { status, stdout } = await runInProcess('audit', path, '--json', at('right.json'));
    expect([status, stdout]).toEqual([0, stdout]);
    expect(stdout).toContain('mamba2, 4 heads (2 of B and C), 110 tokens');
    expect(stdout.replace(/\s+/g, ' ')).toContain(
      'Δ = softplus(dt + dt_bias), from 0.01 to 0.5, gated by z, begins with a state',
    );
    expect(stdout).toMatch(/unheard/);
    const report = JSON.parse(await readFile(at('right.json'), 'utf8')) as RecurrentReport;
    await validateFileReport(report);
    expect(report.quantities.map(({ name }) => name)).toEqual(['out', 'final_states']);
    expect(report.problem).toMatchObject({
      family: 'mamba2',
      scale: 1,
      mamba2: { dtBias: true, dtSoftplus: true, dtLimit: [0.01, 0.5], skip: true, gate: true },
      formats: { C: 'bf16', x: 'bf16', A: 'fp32', dt_bias: 'fp32' },
    });
    expect(report.inputs.outputs.map((one) => one.tensor)).toEqual(['out', 'final_states']);
  });

  it('fails a file whose bias the kernel did not see, and says so', async () => {
    const problem = mamba2Problem(drawn);
    const bias = tensor('fp32', [4], (i) => -4 + i);
    const path = await written('bias.safetensors', problem, { dt_bias: bias });
    const { status, stdout } = await runInProcess('audit', path);
    expect(status).toBe(1);
    expect(stdout).toContain('FAIL');
  });

  inTurn('takes a seq_idx for ends, and says that a kernel left dt_limit out', async () => {
    const problem = mamba2Problem({ ...drawn, dtLimit: [0, Infinity], bias: 0 });
    const path = await written(
      'limit.safetensors',
      problem,
      {},
      {
        dt_limit: '[0, 0.4]',
        cu_seqlens: '',
      },
    );
    const { status, stdout } = await runInProcess('audit', path);
    expect(status).toBe(1);
    expect(stdout).toContain('the limits of dt are ignored');
  });

  it.each([
    ['dt', { dt: undefined }, {}, /mamba2 needs a tensor "dt"; add it/],
    ['A', { A: tensor('fp32', [3], () => -1) }, {}, /A has shape \[3\]; give it \[4\]/],
    ['limits', {}, { dt_limit: '0.1' }, /dt_limit is "0.1"; give the least and the largest Δ/],
    ['scale', {}, { scale: '0.5' }, /mamba2 has no scale, and 0.5 is given; leave it out/],
  ] as const)('refuses a file with a wrong %s in one line', async (name, more, notes, message) => {
    const path = await written(`${name}.safetensors`, mamba2Problem(drawn), more, notes);
    expect(await refusal('audit', path)).toMatch(message);
  });
});
