import { describe, expect, it } from 'vitest';
import { judgeOutputs } from '../../src/audit/index.js';
import {
  createRotation,
  type Problem,
  type RotaryLayout,
  type Tensor,
} from '../../src/problem/index.js';
import { sampled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { normalProblem, seededRandom } from '../kernels/features/index.js';
import { decode, encode } from './damage.js';
import { runSoundKernel } from './host-mistakes.js';

const inTurn = turns(import.meta.url);

const sizes = { batch: 1, heads: 2, kvHeads: 1, queries: 64, keys: 128 } as const;

/** Tables of the usual angles, position·10000^(−2t/dim); every number once, or twice as a framework has them. */
function tables(dim: number, doubled: RotaryLayout | null): NonNullable<Problem['rotary']> {
  const pairs = dim / 2;
  const columns = doubled === null ? pairs : dim;
  const of = (f: (x: number) => number): Tensor => ({
    format: 'fp32',
    shape: [sizes.keys, columns],
    data: Float32Array.from({ length: sizes.keys * columns }, (_, i) => {
      const column = i % columns;
      const t = doubled === null ? column : doubled === 'halves' ? column % pairs : column >> 1;
      return f(Math.floor(i / columns) * 10_000 ** (-t / pairs));
    }),
  });
  return { cos: of(Math.cos), sin: of(Math.sin) };
}

/** Each row of a tensor turned by the angles of its position, so many times, and rounded to bf16 again. */
function rotated(
  tensor: Tensor,
  rows: number,
  turn: (vector: Float64Array, row: number) => Float64Array,
) {
  const values = decode(tensor);
  const dim = tensor.shape.at(-1)!;
  for (let at = 0; at < values.length; at += dim)
    values.set(turn(values.slice(at, at + dim), (at / dim) % rows), at);
  return encode(values, tensor.format, tensor.shape);
}

interface Drawn {
  readonly problem: Problem;
  /** The problem as a kernel has it whose q and k are rotated otherwise, from those without a rotation. */
  readonly misread: (
    q: (x: Float64Array, i: number) => Float64Array,
    k: (x: Float64Array, j: number) => Float64Array,
  ) => Problem;
  readonly turn: (
    x: Float64Array,
    position: number,
    times: number,
    layout?: RotaryLayout,
  ) => Float64Array;
}

/** A problem whose queries are the last of its keys, with the tables of its rotation. */
function drawRotated(layout: RotaryLayout, doubled: RotaryLayout | null, causal: boolean): Drawn {
  const raw = { ...normalProblem(seededRandom(testSeed), sizes), causal };
  const dim = raw.q.shape.at(-1)!;
  const rotary = tables(dim, doubled);
  const rotation = createRotation(rotary, dim);
  const turn: Drawn['turn'] = (x, position, times, how = layout) =>
    rotation.turn(x, position, how, times);
  const misread: Drawn['misread'] = (q, k) => ({
    ...raw,
    q: rotated(raw.q, sizes.queries, q),
    k: rotated(raw.k, sizes.keys, k),
  });
  const before = sizes.keys - sizes.queries;
  const problem = misread(
    (x, i) => turn(x, i + before, 1),
    (x, j) => turn(x, j, 1),
  );
  return { problem: { ...problem, rotary }, misread, turn };
}

const before = sizes.keys - sizes.queries;

const faults: Readonly<
  Record<string, (drawn: Drawn, layout: RotaryLayout) => readonly [Problem, RegExp]>
> = {
  'left out': ({ misread }) => [
    misread(
      (x) => x,
      (x) => x,
    ),
    /of Q and K is left out/,
  ],
  'left out of Q': ({ misread, turn }) => [
    misread(
      (x) => x,
      (x, j) => turn(x, j, 1),
    ),
    /of Q is left out/,
  ],
  'left out of K': ({ misread, turn }) => [
    misread(
      (x, i) => turn(x, i + before, 1),
      (x) => x,
    ),
    /of K is left out/,
  ],
  'applied twice': ({ misread, turn }) => [
    misread(
      (x, i) => turn(x, i + before, 2),
      (x, j) => turn(x, j, 2),
    ),
    /of Q and K is applied twice/,
  ],
  'turned the other way': ({ misread, turn }) => [
    misread(
      (x, i) => turn(x, i + before, -1),
      (x, j) => turn(x, j, -1),
    ),
    /of Q and K is turned the other way/,
  ],
  'of the other layout': ({ misread, turn }, layout) => {
    const other = layout === 'halves' ? 'neighbours' : 'halves';
    return [
      misread(
        (x, i) => turn(x, i + before, 1, other),
        (x, j) => turn(x, j, 1, other),
      ),
      /of Q and K is applied to .* in place of/,
    ];
  },
  'with positions of queries from 0': ({ misread, turn }) => [
    misread(
      (x, i) => turn(x, i, 1),
      (x, j) => turn(x, j, 1),
    ),
    /counts positions from 0/,
  ],
};

describe('a rotary embedding whose tables are given', () => {
  const layouts = [
    ['halves', null],
    ['neighbours', 'neighbours'],
  ] as const;
  const isTold = (fault: (typeof faults)[string], [layout, doubled]: (typeof layouts)[number]) => {
    const drawn = drawRotated(layout, doubled, layout === 'halves');
    const [wrong, sentence] = fault(drawn, layout);
    const { verdict } = judgeOutputs(drawn.problem, runSoundKernel(wrong));
    const { diagnosis } = verdict;
    expect(verdict.pass).toBe(false);
    expect(diagnosis?.sentence).toMatch(sentence);
    expect(diagnosis?.id).toBe('rotary-embedding');
  };

  it.each(sampled(Object.entries(faults), 2))('is told where it is %s', (_, fault) => {
    isTold(fault, sampled(layouts, 1)[0]);
  });

  inTurn.each(Object.entries(faults))('is told where it is %s, in every layout', (_, fault) => {
    for (const layout of layouts) isTold(fault, layout);
  });

  it('is no fault of a kernel that computes with q and k as they are', () => {
    const { problem } = drawRotated('halves', 'halves', true);
    expect(judgeOutputs(problem, runSoundKernel(problem)).verdict.pass).toBe(true);
  });
});
