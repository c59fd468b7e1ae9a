import * as fc from 'fast-check';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, sequencesOf, tensor } from '../../setup/problems.js';
import type { Asked } from './defined-backward.js';

export const upTo = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => first + i);

/** The kinds of problems that are drawn. */
export interface DrawnKinds {
  readonly masked?: boolean;
  readonly packed?: boolean;
}

/**
 * Small problems with a gradient of their output, of batches, grouped heads, rows and keys; with a causal mask or a window, or of packed
 * sequences, where that is asked for. No two elements of a tensor are alike.
 */
export function drawnCase({ masked = false, packed = false }: DrawnKinds): fc.Arbitrary<Asked> {
  const size = (max: number) => fc.integer({ min: 1, max });
  return fc
    .record({
      batch: size(packed ? 1 : 3),
      kvHeads: size(2),
      groupSize: size(2),
      queries: size(4),
      keys: size(5),
      dim: size(3),
      vDim: size(3),
      more: size(3),
      seed: fc.integer({ min: 1, max: 2 ** 30 }),
      mask: fc.constantFrom('none', 'causal', 'window', 'wide'),
    })
    .map(({ batch, kvHeads, groupSize, queries, keys, dim, vDim, more, seed, mask }) => {
      const sequences = sequencesOf([
        [queries, keys],
        [more, 1 + (more % 2)],
      ]);
      const heads = kvHeads * groupSize;
      const frame = { batch, heads, kvHeads, dim, vDim, format: 'fp32' } as const;
      const random = pseudorandom(seed);
      const left = mask === 'wide' ? 2 : 0;
      const masks = masked
        ? {
            causal: mask === 'causal',
            window: mask.startsWith('wi') ? { left, right: mask === 'wide' ? 1 : 0 } : null,
          }
        : {};
      const problem = packed
        ? filledProblem(
            { ...frame, queries: queries + more, keys: keys + 1 + (more % 2) },
            random,
            { ...masks, sequences },
          )
        : filledProblem({ ...frame, queries, keys }, random, masks);
      const { queries: rows } = problemShape(problem);
      return { problem, dout: tensor('fp32', [batch, heads, rows, vDim], random) };
    });
}

/** One number for each place of a tensor. */
export type Places = (batch: number, head: number, row: number, column: number) => number;

/** All places of a tensor, row-major. */
export function* placesOf([batches, heads, rows, columns]: readonly number[]) {
  for (let b = 0; b < batches; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < rows; i++) for (let c = 0; c < columns; c++) yield [b, h, i, c] as const;
}

/** The number of a place of a tensor of a shape. */
export function indexAt(
  [, heads, rows, columns]: readonly number[],
  [b, h, i, c]: readonly [number, number, number, number],
): number {
  return ((b * heads + h) * rows + i) * columns + c;
}

/** The canonical shapes of gradients, and of what they are gradients of. */
export function shapesOf({
  batch,
  heads,
  kvHeads,
  queries,
  keys,
  qkDim,
  vDim,
}: ProblemShape): Readonly<Record<'dq' | 'dk' | 'dv' | 'dout', readonly number[]>> {
  return {
    dq: [batch, heads, queries, qkDim],
    dk: [batch, kvHeads, keys, qkDim],
    dv: [batch, kvHeads, keys, vDim],
    dout: [batch, heads, queries, vDim],
  };
}

/** Whether a query sees a key, by the causal mask and the window, and the number of both in their sequence. */
export function seesKey({ causal, window, sequences }: Problem, shape: ProblemShape) {
  const all = sequences ?? [
    { firstQuery: 0, queries: shape.queries, firstKey: 0, keys: shape.keys },
  ];
  return (query: number, key: number): boolean =>
    all.some(({ firstQuery, queries, firstKey, keys }) => {
      const [i, j] = [query - firstQuery, key - firstKey];
      const isOwn = i >= 0 && i < queries && j >= 0 && j < keys;
      const ahead = j - keys - (i - queries);
      const isNear =
        window === null ||
        ((window.left < 0 || -ahead <= window.left) && (window.right < 0 || ahead <= window.right));
      return isOwn && isNear && (!causal || ahead <= 0);
    });
}
