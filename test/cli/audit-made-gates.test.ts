import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { emulateRecurrence, findRecurrentModel } from '../../kernels/index.js';
import type { Tensor } from '../../src/formats/index.js';
import { writeRawTensors } from '../../src/io/index.js';
import { withHeadGates, type RecurrentProblem } from '../../src/problem/index.js';
import type { RecurrentReport } from '../../src/report/json/index.js';
import { validateFileReport } from '../../src/report/validation/index.js';
import { madeGateProblem } from '../setup/made-gates.js';
import { tensor } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'flashproof-audit-made-gates-'));
afterAll(() => rm(folder, { recursive: true }));

const dtypes = { fp32: 'F32', bf16: 'BF16' } as Readonly<Record<string, string>>;

/** Writes a problem and what a kernel gives, token by token; null leaves a tensor out. */
async function written(
  name: string,
  problem: RecurrentProblem,
  more: Readonly<Record<string, Tensor | null | undefined>> = {},
  notes: Readonly<Record<string, string>> = {},
): Promise<string> {
  const arithmetic = findRecurrentModel('naive-recurrent')!.arithmetic(problem);
  const { out, final_state } = emulateRecurrence(problem, arithmetic);
  const { q, k, v, gateInputs, strengthLogits, initialState, cuSeqlens } = problem;
  const { aLog, a, dtBias } = gateInputs!;
  const tensors: Readonly<Record<string, Tensor | null | undefined>> = {
    q,
    k,
    v,
    A_log: aLog,
    a,
    dt_bias: dtBias,
    b: strengthLogits,
    initial_state: initialState,
    out,
    final_state,
    ...more,
  };
  const raw = Object.entries(tensors).flatMap(([one, given]) => {
    if (!given) return [];
    const { data, shape, format } = given;
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return [{ name: one, dtype: dtypes[format], shape: [...shape], bytes }];
  });
  const path = join(folder, `${name}.safetensors`);
  await writeRawTensors(path, raw, {
    family: problem.family,
    normalisation: '1e-6',
    cu_seqlens: cuSeqlens!.join(','),
    ...notes,
  });
  return path;
}

const drawn = { seed: 31, lengths: [30, 12], keyDim: 8, valueDim: 4, bias: -1 } as const;
const gated = madeGateProblem({ ...drawn, family: 'gated-delta' });
const keyed = madeGateProblem({ ...drawn, family: 'kda' });

/** A tensor in another shape. */
const flat = (tensor: Tensor, ...shape: readonly number[]): Tensor => ({ ...tensor, shape });

describe('an audit of a file without gates, but with what they are made of', () => {
  it('passes a kernel that makes them, and says how', async () => {
    const path = await written('gated', gated);
    const { status, stdout } = await runInProcess('audit', path);
    expect([status, stdout.split(':')[0]]).toEqual([0, 'PASS']);
    const text = stdout.replaceAll(/\s+/g, ' ');
    expect(text).toContain('g = −exp(A_log) softplus(a + dt_bias), β = σ(b)');
    expect(text).not.toContain('Not used');
    const { stdout: json } = await runInProcess('audit', path, '--json', '-');
    const report = JSON.parse(json) as RecurrentReport;
    await validateFileReport(report);
    expect(report.problem.formats).toMatchObject({ A_log: 'fp32', a: 'bf16', b: 'bf16' });
  });

  it('takes key dimensions that lie flat beside the heads', async () => {
    const { aLog, a, dtBias } = keyed.gateInputs!;
    const shaped = {
      A_log: flat(aLog, 1, 1, 2, 1),
      a: flat(a, 1, 42, 16),
      dt_bias: flat(dtBias!, 16),
    };
    const { status, stdout } = await runInProcess('audit', await written('keyed', keyed, shaped));
    expect([status, stdout.split(':')[0]]).toEqual([0, 'PASS']);
    expect(stdout).toContain('kda');
  });

  it('names the cause of a kernel that leaves dt_bias out', async () => {
    const gateInputs = { ...gated.gateInputs!, dtBias: undefined };
    const arithmetic = findRecurrentModel('naive-recurrent')!.arithmetic(gated);
    const { out } = emulateRecurrence({ ...gated, gateInputs }, arithmetic);
    const path = await written('fault', gated, { out, final_state: null });
    const { status, stdout } = await runInProcess('audit', path);
    expect([status, stdout.split('.')[0]]).toEqual([1, 'FAIL: dt_bias is left out']);
  });

  it('takes decays of heads as exponents of 2, where the file says so', async () => {
    const rest: { -readonly [Key in keyof RecurrentProblem]: RecurrentProblem[Key] } = { ...gated };
    delete rest.gateInputs;
    delete rest.strengthLogits;
    const gamma = tensor('fp32', [2], (i) => -0.1 * (i + 1));
    const problem = withHeadGates({ ...rest, family: 'retention' }, gamma);
    const arithmetic = findRecurrentModel('chunked')!.arithmetic(problem);
    const { out, final_state } = emulateRecurrence({ ...problem, gateBase: 2 }, arithmetic);
    const tensors = {
      A_log: null,
      a: null,
      dt_bias: null,
      b: null,
      g_gamma: gamma,
      out,
      final_state,
    };
    const named = async (name: string, notes: Readonly<Record<string, string>>) => {
      const path = await written(name, gated, tensors, { family: 'retention', ...notes });
      const { status, stdout } = await runInProcess('audit', path);
      return [status, stdout.replaceAll(/\s+/g, ' ').split('.')[0]];
    };
    expect(await named('binary', { gate_base: '2' })).toEqual([
      0,
      expect.stringContaining('PASS: the output and the final state'),
    ]);
    expect(await named('natural', {})).toEqual([1, 'FAIL: gates are exponents of 2 instead of e']);
    const path = await written('other', gated, tensors, { family: 'retention', gate_base: '10' });
    expect(await refusal('audit', path)).toMatch(
      /gate_base is "10"; give 2 or e, of which gates are exponents/,
    );
  });

  it('refuses gates beside what they are made of, and one without the other', async () => {
    const g = { ...gated.gateInputs!.a };
    expect(await refusal('audit', await written('both', gated, { g }))).toMatch(
      /both\.safetensors: there are g and A_log, of which g is made; give one/,
    );
    expect(await refusal('audit', await written('alone', gated, { a: null }))).toMatch(
      /alone\.safetensors: A_log needs a tensor "a", of which gates are made; add it/,
    );
    expect(
      await refusal('audit', await written('narrow', keyed, { a: gated.gateInputs!.a })),
    ).toMatch(/a has shape \[1, 42, 2\]; give it \[1, 42, 2, 8\]/);
  });
});
