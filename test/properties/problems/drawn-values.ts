import { expect } from 'vitest';
import { type RegimeName } from '../../../properties/index.js';
import { regimes } from '../../../properties/problems/regimes/index.js';
import type { Sizes } from '../../../properties/problems/sizes.js';
import { randomValues } from '../../../properties/problems/values.js';
import { formats, type FormatName } from '../../../src/formats/index.js';

export const upTo = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => first + i);
export const sizes: Sizes = {
  batch: 2,
  kvHeads: 2,
  groupSize: 2,
  queries: 3,
  keys: 8,
  qkDim: 4,
  vDim: 3,
};
export const heads = sizes.batch * sizes.kvHeads;

export interface Drawn {
  readonly name: RegimeName;
  readonly of?: Partial<Sizes>;
  readonly format?: FormatName;
  readonly scaleKind?: 'default' | 'odd';
}

/** What a regime draws before it is rounded, the same for the same seed. */
export function drawn(
  { name, of = {}, format = 'fp32', scaleKind = 'default' }: Drawn,
  seed: number,
) {
  const own = { ...sizes, ...of };
  return regimes[name].draw({
    sizes: own,
    format: formats[format],
    random: randomValues(seed),
    tiling: { blockKeys: 4, threshold: 8 },
    scaleKind,
  });
}

export const seeds = upTo(60, 1);
export const all = (what: Drawn) => seeds.map((seed) => drawn(what, seed));
export const rowsOf = (values: Float64Array, dim: number) =>
  upTo(values.length / dim).map((row) => [...values.subarray(row * dim, (row + 1) * dim)]);
export const dot = (a: readonly number[], b: readonly number[]) =>
  a.reduce((sum, x, c) => sum + x * b[c], 0);
/** Rows of K of each kv head, and the rows of Q of its group. */
export const headsOf = (
  { q, k }: { q: Float64Array; k: Float64Array },
  { queries, keys, qkDim, groupSize } = sizes,
) =>
  upTo(heads).map((head) => ({
    queries: rowsOf(q, qkDim).slice(head * groupSize * queries, (head + 1) * groupSize * queries),
    keys: rowsOf(k, qkDim).slice(head * keys, (head + 1) * keys),
  }));
export const deviation = (values: Iterable<number>) => {
  const list = [...values];
  return Math.sqrt(list.reduce((sum, x) => sum + x * x, 0) / list.length);
};
/** That numbers lie within a range and come near both of its ends. */
export function expectFilled(
  numbers: readonly number[],
  least: number,
  most: number,
  near = (most - least) / 8,
) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  expect(low).toBeGreaterThanOrEqual(least);
  expect(low).toBeLessThanOrEqual(least + near);
  expect(high).toBeLessThanOrEqual(most);
  expect(high).toBeGreaterThanOrEqual(most - near);
}
export const scale = 1 / Math.sqrt(sizes.qkDim);
