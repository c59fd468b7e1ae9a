import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../oracles/index.js';
import { judgeMerge, type MergedOutputs } from '../../../src/audit/splits/judge-merge.js';
import { mergeParts, type PartialResults } from '../../../src/audit/splits/merge-parts.js';
import { quantities } from '../../../src/problem/index.js';
import { bellShaped } from '../gradients/gradient-case.js';
import { filledProblem } from '../../setup/problems.js';
import { faultAt } from './fault-at.js';

const [splits, heads, queries, keys, dim] = [3, 2, 5, 96, 8] as const;
const rows = heads * queries;

/** Exact results of three parts of the keys of a problem. */
const parts: PartialResults = (() => {
  const problem = filledProblem({ heads, queries, keys, dim }, bellShaped(5), { scale: 1 });
  const ranges = Array.from({ length: splits }, (_, i) => ({ begin: 32 * i, end: 32 * (i + 1) }));
  const of = ranges.map((range) => attentionOracle({ ...problem, keyRanges: [range] }).quantities);
  return {
    splits,
    rows,
    dim,
    out: Float64Array.from(of.flatMap(({ out }) => [...out.values])),
    lse: Float64Array.from(of.flatMap(({ lse }) => [...lse.values])),
  };
})();
const merged = mergeParts(parts);
const [out, lse] = quantities;

/** What is said of the merge of the parts with errors, in fp64. */
function judged(errors: Readonly<Partial<Record<'out' | 'lse', Float64Array>>>) {
  const spoiled = (name: 'out' | 'lse') => merged[name].map((x, i) => x + (errors[name]?.[i] ?? 0));
  const outputs: MergedOutputs = {
    out: { quantity: out, format: 'fp64', values: spoiled('out') },
    lse: { quantity: lse, format: 'fp64', values: spoiled('lse') },
  };
  return judgeMerge(parts, outputs, parts, 'nearest');
}

/** An error of the last row, of its last element. */
const last = (length: number) =>
  Float64Array.from({ length }, (_, i) => (i === length - 1 ? 1 : 0));

describe('a fault of a merge', () => {
  it('of the output is seen by the output alone', () => {
    const at = faultAt(last(rows * dim), (errors) => judged({ out: errors }).used);
    expect(judged({ out: at(1.01) })).toMatchObject({ pass: false, lseUsed: 0 });
    expect(judged({ out: at(0.99) }).pass).toBe(true);
  });

  it('of the LSE is seen by the LSE alone', () => {
    const at = faultAt(last(rows), (errors) => judged({ lse: errors }).lseUsed!);
    expect(judged({ lse: at(1.01) })).toMatchObject({ pass: false, used: 0 });
    expect(judged({ lse: at(0.99) }).pass).toBe(true);
  });

  it('is seen from some roundings of fp32 on', () => {
    // A weight e^(l − m) of fp32 is off by roundings of l and m; sums, quotient and exponential add some more.
    const ofRow = Math.max(
      ...Array.from({ length: splits }, (_, i) => parts.lse[(i + 1) * rows - 1]),
    );
    const some = 2 ** -24 * (32 * ofRow + 64);
    const error = some * merged.magnitude[rows * dim - 1];
    expect(judged({ out: last(rows * dim).map((x) => x * error) }).pass).toBe(false);
    expect(judged({ lse: last(rows).map((x) => x * some * (1 + ofRow)) }).pass).toBe(false);
  });

  it('is not seen where there is none', () => {
    expect(judged({})).toEqual({ pass: true, used: 0, lseUsed: 0, causes: [] });
  });
});
