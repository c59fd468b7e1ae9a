import { describe, expect, it } from 'vitest';
import { matchAttention, matchBound } from '../../properties/index.js';
import { randomValues } from '../../properties/problems/values.js';
import {
  attentionOracle,
  forEachWeightTile,
  type AttentionReference,
} from '../../oracles/index.js';
import {
  structureOf,
  judgeOutputs,
  type Judgement,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { testSpread } from '../../src/audit/spread-test.js';
import { WorstResults } from '../../src/audit/structure/structure-result.js';
import { filledProblem } from '../setup/problems.js';
import { encode } from './damage.js';
import { compared, handMadeBounds, handMadeReference } from './hand-made.js';

interface Asked {
  readonly queries: number;
  readonly keys: number;
  readonly scale?: number;
  readonly causal?: boolean;
}

function problemOf({ queries, keys, scale = 0.5, causal = false }: Asked): Problem {
  const { normal } = randomValues(77);
  return filledProblem({ queries, keys, dim: 4 }, normal, { scale, causal });
}

/** What the oracle gives, rounded. */
function exactOutputs({
  shape,
  quantities: {
    out: { values: out },
    lse: { values: lse },
  },
}: AttentionReference) {
  const { queries, vDim } = shape;
  return {
    out: encode(out, 'bf16', [1, 1, queries, vDim]),
    lse: encode(lse, 'fp32', [1, 1, queries]),
  };
}

function untestedOf({ verdict }: Judgement): Record<string, string> {
  return Object.fromEntries(verdict.untested.map(({ test, reason }) => [test, reason]));
}

describe('a block of queries some of which see no key', () => {
  const problem = problemOf({ queries: 260, keys: 240, causal: true });
  const reference = attentionOracle(problem);

  it('has weights of zero there', () => {
    let ofRows = 0;
    forEachWeightTile(problem, reference, {
      begin: () => undefined,
      visit: ({ weights, rows, firstRow, stride }) => {
        expect(weights.every((w) => w >= 0)).toBe(true);
        for (let i = 0; i < Math.min(rows, 20 - firstRow); i++)
          ofRows += weights.subarray(i * stride, (i + 1) * stride).reduce((a, b) => a + b, 0);
      },
      end: () => undefined,
    });
    expect(ofRows).toBe(0);
  });

  it('has its tiles of keys tested all the same', () => {
    const exact = judgeOutputs(problem, exactOutputs(reference), { diagnose: false });
    expect(exact.verdict.pass).toBe(true);
    const { threshold } = structureOf(exact).find(
      ({ test, scope }) => test === 'key-tile' && scope === 'head',
    )!;
    expect(threshold).toBeLessThan(0.5);
    const { verdict } = judgeOutputs(problem, withoutFirstTile(), { diagnose: false });
    expect(verdict.findings.map(({ test }) => test)).toContain('key-tile');
  });

  /** Of a kernel that skips keys 0 to 127, in queries 180 to 259, which see others. */
  function withoutFirstTile() {
    const rest = (tensor: Tensor) => ({
      format: tensor.format,
      shape: [1, 1, 240 - 128, 4],
      data: tensor.data.subarray(128 * 4),
    });
    const cut = attentionOracle({ ...problem, k: rest(problem.k), v: rest(problem.v) });
    const out = reference.quantities.out.values.slice();
    out.set(cut.quantities.out.values.subarray(180 * 4), 180 * 4);
    return { ...exactOutputs(reference), out: encode(out, 'bf16', [1, 1, 260, 4]) };
  }
});

describe('the tests that could not be made', () => {
  it('are said, each with its reason', () => {
    const problem = problemOf({ queries: 9, keys: 12 });
    const outputs = exactOutputs(attentionOracle(problem));
    const options = { diagnose: false } as const;
    expect(untestedOf(judgeOutputs(problem, outputs, options))).toEqual({
      'key-tile': 'there is one tile of keys only',
    });
    expect(untestedOf(judgeOutputs(problem, { ...outputs, lse: null }, options))).toEqual({
      'key-tile': 'there is one tile of keys only',
      'lse-mean': 'no LSE was given',
    });
    const declared = (premises: PremiseDeclaration) =>
      Object.keys(untestedOf(judgeOutputs(problem, outputs, { ...options, premises })));
    const untested = ['truncation', 'dispersion', 'lse-mean', 'key-tile'];
    expect(declared({ partials: 'bf16' })).toEqual(untested);
    // The spread of the rows themselves tells where scores are written.
    expect(declared({ scores: 'bf16' })).toEqual(untested.filter((test) => test !== 'lse-mean'));
  });

  it('are all of them where scores are too large for their errors to be small', () => {
    const problem = problemOf({ queries: 9, keys: 12, scale: 2 ** 30 });
    const judged = judgeOutputs(problem, exactOutputs(attentionOracle(problem)), {
      diagnose: false,
    });
    expect(judged.verdict.pass).toBe(true);
    expect(Object.keys(untestedOf(judged))).toEqual(
      expect.arrayContaining(['scale', 'bias', 'truncation', 'dispersion']),
    );
  });
});

describe('where no element has a bound', () => {
  const problem = problemOf({ queries: 3, keys: 5, scale: 2 ** 127 });
  const reference = attentionOracle(problem);
  const outputs = exactOutputs(reference);

  it('nothing matches, and the message says why', () => {
    for (const { pass, message } of [
      matchBound(problem, outputs),
      matchAttention(problem, outputs),
    ]) {
      expect(pass).toBe(false);
      expect(message).toMatch(/^NOT JUDGED: no element has a bound/);
    }
  });
});

describe('a limit that is no number', () => {
  it('is an error of ours', () => {
    const reference = handMadeReference({ queries: 2 });
    const bounds = handMadeBounds(reference, { deviation: NaN });
    expect(() =>
      testSpread(compared(reference, 'out', reference.quantities.out.values, 'fp32'), bounds, 1e-9),
    ).toThrow('is NaN');
  });

  it.each([
    ['first', [NaN, 1]],
    ['later', [1, NaN]],
  ])('is one among others too: %s', (_, thresholds) => {
    const worst = new WorstResults();
    const place = { scope: 'head', head: 0, firstRow: 0, rows: 1, firstKey: 0, keys: 1 } as const;
    const add = (threshold: number) =>
      worst.add({ test: 'key-tile', ...place, statistic: 0.5, threshold });
    expect(() => thresholds.forEach(add)).toThrow('its threshold NaN');
  });
});
