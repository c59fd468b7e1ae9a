import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertAttentionKernel,
  checkKernel,
  describeFailures,
  groupByKind,
  groupFailures,
  type AttentionKernel,
  type KernelPromises,
} from '../../../properties/index.js';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import {
  problemShape,
  visibleKeys,
  type Problem,
  type Tensor,
} from '../../../src/problem/index.js';
import { exactKernel } from '../exact-kernel.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const promises: KernelPromises = {
  formats: ['bf16'],
  sizes: {
    batch: { max: 1 },
    queries: { max: 6 },
    keys: { max: 6 },
    qkDim: { max: 4 },
    vDim: { max: 4 },
  },
};
const options = { regimes: ['normal', 'ones'], runs: 3, seed: 3 } as const;
const someLaws = ['within-bound', 'padding', 'empty-rows'] as const;

type Change = (out: Float64Array, lse: Float64Array, problem: Problem) => void;

/** The exact kernel with its outputs changed. */
function spoilt(change: Change): AttentionKernel {
  return (problem) => {
    const { out, lse } = exactKernel(problem) as { out: Tensor; lse: Tensor };
    const values = decodeToFloat64(out.data, formats[out.format]);
    const ofLse = decodeToFloat64(lse.data, formats[lse.format]);
    change(values, ofLse, problem);
    const data = encodeFromFloat64(formats[out.format], values);
    return { out: { ...out, data }, lse: { ...lse, data: Float32Array.from(ofLse) } };
  };
}

/** What a kernel leaves where nothing is visible that divides 0 by 0. */
const nanWithoutKeys = spoilt((out, lse, problem) => {
  const shape = problemShape(problem);
  for (let row = 0; row < lse.length; row++) {
    const { begin, end } = visibleKeys(problem, shape, row % shape.queries);
    if (begin < end) continue;
    out.fill(NaN, row * shape.vDim, (row + 1) * shape.vDim);
    lse[row] = NaN;
  }
});

describe('violations of one cause', () => {
  inTurn('are one finding: NaN on rows without keys', async () => {
    const result = await checkKernel(nanWithoutKeys, promises, {
      ...options,
      laws: someLaws,
    });
    const violated = result.laws.filter(({ status }) => status === 'violated');
    expect(violated.length).toBeGreaterThan(2);
    const groups = groupFailures(result);
    expect(groups.map(({ title, violations }) => [title, violations.length])).toEqual([
      ['NaN on rows without keys', violated.length],
    ]);
    const text = describeFailures(result);
    expect(text).toMatch(
      new RegExp(`^NaN on rows without keys \\(seen by ${violated.length} laws\\)\\.\n\n`),
    );
    // One problem in full, and a line for each other law.
    expect(text.match(/^attention problem/gm)).toHaveLength(1);
    expect(text.split('Seen as well by\n')[1].split('\n')).toHaveLength(violated.length - 1);
    const scope = { ...options, laws: ['within-bound', 'empty-rows'] } as const;
    await expect(assertAttentionKernel(nanWithoutKeys, promises, scope)).rejects.toThrow(
      /^the kernel violates \d+ of \d+ laws, apparently by 1 cause \(seed 3/,
    );
  });

  inTurn('are one finding where the masks of rows without keys are wrong as all are', async () => {
    const unmasked: AttentionKernel = (problem) => exactKernel({ ...problem, causal: false });
    const causal = { ...promises, formats: ['fp32'], causal: 'only', window: false } as const;
    const scope = {
      ...options,
      laws: ['within-bound', 'weights-sum-to-one', 'empty-rows'],
    } as const;
    const result = await checkKernel(unmasked, causal, scope);
    const groups = groupFailures(result).map(({ violations }) => violations.length);
    expect(groups).toEqual([result.laws.filter(({ status }) => status === 'violated').length]);
    expect(groups[0]).toBeGreaterThan(1);
  });

  inTurn('are told from those of others', async () => {
    const both = spoilt((out, lse, problem) => {
      const shape = problemShape(problem);
      lse.forEach((x, row) => {
        const { begin, end } = visibleKeys(problem, shape, row % shape.queries);
        if (begin < end) lse[row] = x + 0.5;
        else out.fill(NaN, row * shape.vDim, (row + 1) * shape.vDim);
      });
    });
    const scope = {
      ...options,
      laws: ['empty-rows', 'lse-monotone', 'weights-sum-to-one'],
    } as const;
    const result = await checkKernel(both, { ...promises, softcap: false }, scope);
    const groups = groupFailures(result).map(({ title, violations }) => [
      ...[title, violations.map(({ id }) => id)],
    ]);
    const ofLse = groups.find(([title]) => /\bLSE\b/.test(String(title)));
    expect(ofLse?.[1]).toEqual(['lse-monotone', 'weights-sum-to-one']);
    expect(groups).toHaveLength(2);
  });

  it('are those of a kernel that fails with the same words, whatever their numbers', async () => {
    const crashing: AttentionKernel = ({ q }) => {
      throw new Error(`no block of ${q.data.length} elements`);
    };
    const result = await checkKernel(crashing, promises, { ...options, laws: someLaws });
    expect(groupFailures(result)).toHaveLength(1);
    expect(groupFailures(result)[0].violations).toHaveLength(someLaws.length);
  });
});

describe('groups by kind', () => {
  const kinds = fc.array(
    fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      title: fc.constant('t'),
      equivalents: fc.subarray(['a', 'b', 'c', 'd']),
    }),
    { maxLength: 12 },
  );

  it('hold every violation once, each of a kind that fits it, the same kinds together', () => {
    fc.assert(
      fc.property(kinds, (all) => {
        const groups = groupByKind(all, (kind) => kind);
        const grouped = groups.flatMap(({ violations }) => violations);
        expect(new Set(grouped)).toEqual(new Set(all));
        expect(grouped).toHaveLength(all.length);
        for (const { violations } of groups) {
          const fit = (id: string) =>
            violations.every((kind) => kind.id === id || kind.equivalents.includes(id));
          expect(violations.some(({ id }) => fit(id))).toBe(true);
        }
        const plain = all.map((kind) => ({ ...kind, equivalents: [] }));
        const apart = groupByKind(plain, (kind) => kind).map(({ violations }) => violations[0].id);
        expect([...apart].sort()).toEqual([...new Set(plain.map(({ id }) => id))].sort());
      }),
    );
  });
});
