import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openLaunch } from '../../../src/jobs/index.js';
import { smRates } from '../../../src/machine/index.js';
import { mmaOf, runLaunch } from '../../../src/ptx/run/index.js';

describe('the work of an MMA', () => {
  it.each([
    ['mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32', 2 * 16 * 8 * 16, 16],
    ['mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32', 2 * 16 * 8 * 8, 32],
    ['mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32', 2 * 16 * 8 * 32, 8],
    ['mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64', 2 * 8 * 8 * 4, null],
    ['mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32', 2 * 16 * 8 * 32, null],
    [
      'mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e2m1.e4m3.f32.ue8m0',
      2 * 16 * 8 * 32,
      8,
    ],
    ['mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32', 2 * 16 * 8 * 32, 8],
    [
      'mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3',
      2 * 16 * 8 * 64,
      null,
    ],
    // Of one of the four warps.
    ['wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16', (2 * 64 * 128 * 16) / 4, 16],
    ['wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2', (2 * 64 * 64 * 32) / 4, 8],
  ])('%s', (mnemonic, flops, bits) => {
    expect(mmaOf(mnemonic)).toEqual({ flops, bits });
  });

  it.each([
    'fma.rn.f32',
    'tcgen05.mma.cta_group::1.kind::f16',
    'movmatrix.sync.aligned.m8n8.trans.b16',
  ])('is none of %s', (mnemonic) => {
    expect(mmaOf(mnemonic)).toBeNull();
  });
});

/** Multiprocessors, boost clock in GHz and dense TFLOPS at 16 bits of data sheets. */
const gpus = [
  ['sm_80', 108, 1.41, 312],
  ['sm_89', 128, 2.52, 330.3],
  ['sm_90', 132, 1.83, 989],
  ['sm_100', 148, 1.85, 2250],
  // With sums in fp16; GeForce halves the rate of fp32 sums.
  ['sm_120', 170, 2.407, 419],
] as const;

describe('the rates of an SM', () => {
  it.each(gpus)('make the peak of a %s', (architecture, multiprocessors, clock, peak) => {
    const flops = smRates[architecture].mmaFlops[16] * multiprocessors * clock * 1e9;
    expect(flops / 1e12 / peak).toBeGreaterThan(0.99);
    expect(flops / 1e12 / peak).toBeLessThan(1.01);
  });
});

describe('the work of a recorded attention kernel', () => {
  it.each(['sm_90', 'sm_100', 'sm_120'])('is what its tiles need: %s', async (target) => {
    const path = `examples/triton/recorded/${target}/launch.json`;
    const { module, launch } = await openLaunch({ path });
    const { work, counters, counts } = runLaunch(module, launch, { file: path, races: false });
    // Two tiles of 64 queries, three of 32 keys, 64 columns; both products.
    const tiles = 2 * 3;
    const amounts = new Map(work.lines.map(({ unit, amount }) => [unit, amount]));
    expect(amounts.get('tensor core')).toBe(tiles * 2 * (2 * 64 * 32 * 64));
    // Each score, and a factor or more of each row and tile.
    expect(amounts.get('MUFU')).toBeGreaterThanOrEqual(tiles * (64 * 32 + 64));
    expect(amounts.get('MUFU')).toBeLessThan(2 * tiles * (64 * 32 + 64));
    const text = readFileSync(`examples/triton/recorded/${target}/kernel.ptx`, 'utf8');
    expect(text).toContain('ex2.approx');
    const bytes = (name: string) => counters.globalBytes[name];
    const rows = 2 * 70 * 64;
    expect([bytes('q → registers'), bytes('registers → o'), bytes('registers → lse')]).toEqual([
      ...[rows, rows, 4 * 70],
    ]);
    const issued = [...counts.byMnemonic.values()].reduce((all, one) => all + one.executions, 0);
    expect(amounts.get('issue')).toBe(issued);
  });
});
