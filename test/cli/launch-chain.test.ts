import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readKernel, readManifest } from '../../fixtures/ptx/unpack.mjs';
import { writeSafetensors } from '../../src/io/index.js';
import { startCompiledKernel } from '../../src/jobs/index.js';
import type { AuditReport } from '../../src/report/json/index.js';
import { filledProblem, sumNormalNumbers, tensor, uniformNumbers } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { refusal, runInProcess } from './run-in-process.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-launch-chain-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (name: string) => join(scratch, name);

/** Between Triton's forward and its dQ: a thread a row; Σ o·dO over 64 elements of bf16, and the LSE to base 2. */
const rowSums = `.version 8.7
.target sm_80
.address_size 64
.visible .entry row_sums(.param .u64 o, .param .u64 dout, .param .u64 lse, .param .u64 sums, .param .u64 lse2) {
  .reg .pred %p; .reg .b16 %h<3>; .reg .b32 %r<6>; .reg .b64 %rd<12>; .reg .f32 %f<6>;
  ld.param.u64 %rd1, [o];
  ld.param.u64 %rd2, [dout];
  ld.param.u64 %rd3, [lse];
  ld.param.u64 %rd4, [sums];
  ld.param.u64 %rd5, [lse2];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.s32 %r1, %r2, 64, %r1;
  mul.wide.u32 %rd6, %r1, 128;
  add.s64 %rd1, %rd1, %rd6;
  add.s64 %rd2, %rd2, %rd6;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r3, 0;
more:
  ld.global.b16 %h1, [%rd1];
  ld.global.b16 %h2, [%rd2];
  cvt.f32.bf16 %f2, %h1;
  cvt.f32.bf16 %f3, %h2;
  fma.rn.f32 %f1, %f2, %f3, %f1;
  add.s64 %rd1, %rd1, 2;
  add.s64 %rd2, %rd2, 2;
  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p, %r3, 64;
  @%p bra more;
  mul.wide.u32 %rd7, %r1, 4;
  add.s64 %rd3, %rd3, %rd7;
  add.s64 %rd4, %rd4, %rd7;
  add.s64 %rd5, %rd5, %rd7;
  st.global.f32 [%rd4], %f1;
  ld.global.f32 %f4, [%rd3];
  mul.rn.f32 %f4, %f4, 0f3FB8AA3B;
  st.global.f32 [%rd5], %f4;
  ret;
}
`;

const empty = [{ scratch: 0 }, { scratch: 0 }];
const only = { formats: ['bf16'], requires: ['d == 64', 'batch * heads == 1', 'causal == 0'] };
const forward = {
  ...only,
  ptx: 'forward.ptx',
  entry: 'attend',
  grid: ['ceil(sq / 64)', 1],
  block: [128],
  dynamicSharedBytes: 24576,
  parameters: [
    ...['q', 'k', 'v', 'o', 'lse'].map((name) => ({ tensor: name })),
    ...[{ f32: 'scale' }, { s32: 1 }, { s32: 'sq' }, { s32: 'sk' }, ...empty],
  ],
  outputs: [
    { name: 'o', as: 'out', format: 'bf16' },
    { name: 'lse', as: 'lse' },
  ],
  next: 'row-sums.json',
};
const sums = {
  ptx: 'row-sums.ptx',
  entry: 'row_sums',
  grid: ['sq / 64'],
  block: [64],
  parameters: ['o', 'dout', 'lse', 'sums', 'lse2'].map((name) => ({ tensor: name })),
  buffers: ['sums', 'lse2'].map((name) => ({ name, format: 'fp32', shape: ['sq'] })),
  outputs: [],
  next: 'dq.json',
};
const dq = {
  ptx: 'dq.ptx',
  entry: 'attention_backward_dq',
  grid: ['sq / 64'],
  block: [128],
  dynamicSharedBytes: 65536,
  parameters: [
    ...['q', 'k', 'v', 'dout', 'lse2', 'sums', 'dq'].map((name) => ({ tensor: name })),
    ...[{ f32: 'scale' }, { s32: 'sk' }, ...empty],
  ],
  outputs: [{ name: 'dq', as: 'dq', format: 'bf16' }],
};

const normal = sumNormalNumbers(uniformNumbers(7));
const problem = filledProblem(
  { batch: null, format: 'bf16', queries: 64, keys: 64, dim: 64 },
  { q: normal, k: normal, v: normal },
);
const dout = tensor('bf16', [1, 64, 64], normal);

const write = (name: string, value: object) => writeFileSync(at(name), JSON.stringify(value));

beforeAll(async () => {
  const { kernels } = readManifest();
  const textOf = (name: string) => readKernel(kernels.find((one) => one.name === name)!).ptx;
  writeFileSync(at('forward.ptx'), textOf('triton-sm80-d64'));
  writeFileSync(at('dq.ptx'), textOf('triton-attention-backward-dq'));
  writeFileSync(at('row-sums.ptx'), rowSums);
  write('chain.json', forward);
  write('row-sums.json', sums);
  write('dq.json', dq);
  const { q, k, v, scale } = problem;
  const metadata = { scale: String(scale) };
  await writeSafetensors(at('problem.safetensors'), { q, k, v, dout }, metadata);
});

async function audited(path: string) {
  const run = await runInProcess(
    'audit',
    at('problem.safetensors'),
    '--launch',
    at(path),
    '--json',
    '-',
  );
  return { ...run, report: JSON.parse(run.stdout) as AuditReport };
}

describe('launches that follow one another', () => {
  inTurn('have the tensors of those before them, and are judged together', async () => {
    const { report, status, stdout } = await audited('chain.json');
    expect([status, report.verdict.pass]).toEqual([0, true]);
    // One note a launch, each with its file.
    for (const file of ['chain.json', 'row-sums.json', 'dq.json'])
      expect(stdout).toContain(`0 hints (${file})`);
    expect(stdout).toContain('"dq"');
  });

  inTurn('fail where one of them is wrong', async () => {
    // Sums of the wrong rows: dQ is wrong, O is not.
    writeFileSync(
      at('other.ptx'),
      rowSums.replace('[%rd4], %f1', '[%rd5], %f1').replace('[%rd5], %f4', '[%rd4], %f4'),
    );
    write('other-sums.json', { ...sums, ptx: 'other.ptx' });
    write('other.json', { ...forward, next: 'other-sums.json' });
    const { report, status } = await audited('other.json');
    expect([status, report.verdict.pass]).toEqual([1, false]);
    expect(report.verdict.sentence).toMatch(
      /^FAIL: dQ is .* of the output: the output and the LSE stay/,
    );
  });

  inTurn('run up to the first that takes dO where no gradient is asked for', async () => {
    const kernel = await startCompiledKernel(at('chain.json'));
    const plain = await kernel.run(problem);
    expect(plain.ok && Object.keys(plain.outputs).sort()).toEqual(['lse', 'out']);
    const asked = await kernel.run(problem, { tensors: { dout }, wants: ['out', 'lse', 'dq'] });
    expect(asked.ok && Object.keys(asked.outputs).sort()).toEqual(['dq', 'lse', 'out']);
  });

  it('are told of by run, which runs the first alone', async () => {
    const args = ['run', at('chain.json'), '--problem', at('problem.safetensors')];
    const { stdout, status } = await runInProcess(...args);
    expect(stdout).toContain('Next: row-sums.json follows and is not run here');
    expect(status).toBe(0);
  });

  it('are no circle, and are there', async () => {
    write('circle.json', { ...forward, next: 'back.json' });
    write('back.json', { ...sums, next: 'circle.json' });
    const audit = ['audit', at('problem.safetensors'), '--launch'];
    expect(await refusal(...audit, at('circle.json'))).toMatch(
      /back\.json: next is circle\.json, which leads to it; end the chain/,
    );
    write('nowhere.json', { ...forward, next: 'nothing.json' });
    expect(await refusal(...audit, at('nowhere.json'))).toMatch(/nothing\.json/);
  });

  it.each([
    [
      { name: 'sums', format: 'fp33', shape: ['sq'] },
      /buffer "sums" has the format "fp33"; give one of/,
    ],
    [
      { name: 'sums', format: 'fp32', shape: ['sq / 3'] },
      /buffer "sums" has the shape \[21\.3.*\]; give whole numbers/,
    ],
    [{ name: 'sums', format: 'fp32', shape: [2e6, 2e6] }, /at most 2\^38 bytes/],
  ])('have buffers that fit: %j', async (buffer, message) => {
    write('row-sums-wrong.json', { ...sums, buffers: [buffer, sums.buffers[1]] });
    write('wrong.json', { ...forward, next: 'row-sums-wrong.json' });
    const words = await refusal('audit', at('problem.safetensors'), '--launch', at('wrong.json'));
    expect(words).toMatch(message);
  });
});
