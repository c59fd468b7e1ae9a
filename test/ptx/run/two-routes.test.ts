import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import { createFa4Forward } from '../../../kernels/index.js';
import { attentionProblem } from '../../../properties/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { runOnProblem, type LaunchTemplate } from '../../../src/jobs/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { parseLaunchFile } from '../../../src/ptx/launch/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { capturedKernel, capturedKernels } from '../../fixtures/captured-ptx.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** FlashAttention-4's forward as nvcc compiled it with mma.sync, for an architecture in place of the text's own. */
async function forwardKernel(dim: number, target = 'sm_90'): Promise<LaunchTemplate> {
  const name = `nvcc-fa4-forward-d${dim}`;
  const { template } = capturedKernels.find((kernel) => kernel.name === name)!;
  const ptx = capturedKernel(name).ptx.replace('.target sm_90', `.target ${target}`);
  const file = await parseLaunchFile(JSON.stringify(template), name, ['out', 'lse']);
  return { path: name, file, ptxPath: name, ptx, module: parsePtx(ptx, name), next: null };
}

function tensorOf(shape: readonly number[], seed: number, factor = 1): Tensor {
  const elements = shape.reduce((all, one) => all * one, 1);
  const values = Float64Array.from({ length: elements }, (_, i) => {
    const [u, v] = [
      Math.sin(seed + 12.9898 * i) * 43758.5453,
      Math.sin(78.233 * i + seed) * 24634.63,
    ];
    return factor * Math.sqrt(-2 * Math.log(1 - (u - Math.floor(u)))) * Math.cos(2 * Math.PI * v);
  });
  return { format: 'bf16', shape, data: encodeFromFloat64(formats.bf16, values) };
}

/** What a test chooses of a problem. */
interface Chosen extends Partial<Pick<Problem, 'causal' | 'window' | 'softcap'>> {
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  /** Of Q, so that maxima grow by more than the threshold. */
  readonly factor?: number;
}

function problemOf({
  heads = 1,
  kvHeads = heads,
  queries,
  keys,
  dim,
  factor,
  ...rest
}: Chosen): Problem {
  return {
    q: tensorOf([1, heads, queries, dim], 1, factor),
    k: tensorOf([1, kvHeads, keys, dim], 2),
    v: tensorOf([1, kvHeads, keys, dim], 3),
    scale: dim ** -0.5,
    causal: false,
    window: null,
    softcap: null,
    ...rest,
  };
}

const bytesOf = ({ data }: { readonly data: ArrayBufferView }) =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

/** What `emulate fa4` makes of a problem. */
function emulated(problem: Problem) {
  const forward = createFa4Forward(problem);
  const tiles = Array.from({ length: forward.tiles }, (_, tile) => forward.runTile(tile));
  const joined = (of: 'out' | 'lse') =>
    Buffer.concat(tiles.map((tile) => bytesOf({ data: tile[of] })));
  const count = (of: 'rowRescales' | 'rowRescalesSkipped' | 'polynomialLanes') =>
    tiles.reduce((sum, { counters }) => sum + counters[of], 0);
  return { out: joined('out'), lse: joined('lse'), count };
}

const differing = (a: Uint8Array, b: Uint8Array) =>
  a.reduce((sum, byte, i) => sum + (byte === b[i] ? 0 : 1), 0);

/** Bytes that the machine and the emulation have differently. */
function compare(kernel: LaunchTemplate, problem: Problem) {
  const { outputs, machine } = runOnProblem(kernel, problem);
  const { out, lse, count } = emulated(problem);
  expect(machine.faults).toEqual([]);
  expect([bytesOf(outputs.out).length, bytesOf(outputs.lse).length]).toEqual([
    out.length,
    lse.length,
  ]);
  return {
    out: differing(bytesOf(outputs.out), out),
    lse: differing(bytesOf(outputs.lse), lse),
    count,
  };
}

describe('the forward of FlashAttention-4, compiled with mma.sync and run, equals its emulation bit for bit', () => {
  const short = { queries: 40, keys: 150, dim: 64, factor: 8, causal: true };

  inTurn('causal, with a ragged end', async () => {
    const { out, lse, count } = compare(await forwardKernel(64), problemOf(short));
    expect([out, lse]).toEqual([0, 0]);
    for (const counter of ['rowRescales', 'rowRescalesSkipped', 'polynomialLanes'] as const)
      expect([counter, count(counter) > 0]).toEqual([counter, true]);
  });

  const cases: readonly (readonly [string, Chosen])[] = [
    [
      'two tiles of a CTA, grouped heads, causal',
      { heads: 2, kvHeads: 1, queries: 200, keys: 260, dim: 64, causal: true, factor: 4 },
    ],
    ['128 dimensions, which a CTA has to itself', { queries: 100, keys: 200, dim: 128, factor: 6 }],
    ['128 dimensions, which two CTAs share', { queries: 257, keys: 130, dim: 128 }],
    [
      '128 dimensions in groups',
      { heads: 4, kvHeads: 2, queries: 30, keys: 130, dim: 128, factor: 4 },
    ],
    ['128 dimensions, causal', { queries: 200, keys: 200, dim: 128, causal: true, factor: 4 }],
    ['a softcap', { queries: 60, keys: 200, dim: 64, softcap: 15, factor: 8 }],
    ['a window', { queries: 200, keys: 300, dim: 64, window: { left: 60, right: 20 }, factor: 3 }],
    ['queries without keys', { queries: 300, keys: 100, dim: 64, causal: true, factor: 3 }],
  ];
  inTurn.each(cases)('%s', async (_, chosen) => {
    const { out, lse } = compare(await forwardKernel(chosen.dim), problemOf(chosen));
    expect([out, lse]).toEqual([0, 0]);
  });

  inTurn.each([64, 128])(
    'random problems of %i dimensions, with infinities and NaN',
    async (dim) => {
      const kernel = await forwardKernel(dim);
      const dims = { min: dim, max: dim };
      const problems = attentionProblem({
        formats: ['bf16'],
        specialValues: ['nan', 'infinity'],
        batch: { max: 2 },
        queries: { max: 40 },
        keys: { max: 300 },
        qkDim: dims,
        vDim: dims,
      });
      fc.assert(
        fc.property(problems, (problem) => {
          const { out, lse } = compare(kernel, problem);
          expect([out, lse]).toEqual([0, 0]);
        }),
        { numRuns: scaled(2) },
      );
    },
  );

  inTurn(
    "with Blackwell's mma.sync too, and not with Ampere's, which adds half as many products at once",
    async () => {
      const problem = problemOf(short);
      const blackwell = compare(await forwardKernel(64, 'sm_100'), problem);
      expect([blackwell.out, blackwell.lse]).toEqual([0, 0]);
      const ampere = compare(await forwardKernel(64, 'sm_80'), problem);
      expect(ampere.out + ampere.lse).toBeGreaterThan(0);
    },
  );
});
