import { describe, expect, it } from 'vitest';
import {
  auditOutputs,
  judgeOutputs,
  planThinning,
  sampleRows,
  thinnedRows,
  type Judgement,
} from '../../../src/audit/index.js';
import { rowsProblem, sampledQuantity } from '../../../src/audit/rows/index.js';
import { yardstickAttention } from '../../../kernels/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, quantities } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { filledProblem, uniformNumbers } from '../../setup/problems.js';

const inTurn = turns(import.meta.url);

const frame = { heads: 2, queries: 400, keys: 300, dim: 8 };
const uniform = uniformNumbers(testSeed);
const problem = filledProblem(frame, () => uniform() * 4 - 2, { causal: true });
const shape = problemShape(problem);

const out = {
  format: 'bf16',
  shape: [1, frame.heads, frame.queries, frame.dim],
  data: encodeFromFloat64(formats.bf16, yardstickAttention(problem, shape)),
} as const;

/** 300 rows a head, of which every fourth is left. */
const sampled = sampleRows(problem, { out, lse: null }, { rows: 600, seed: 5 })!;
const thinning = { every: 4, first: 2 };
const left = Int32Array.from({ length: 150 }, (_, i) => (i < 75 ? 0 : 300) + 2 + (i % 75) * 4);

const options = { diagnose: false } as const;

function structureOf({ outputs }: Judgement) {
  return outputs.out.structure.filter(({ test }) => test !== 'key-tile');
}

describe('statistics of some of the sampled rows', () => {
  inTurn('are those of an audit of these rows alone, in the places of the whole problem', () => {
    const thin = judgeOutputs(sampled.problem, sampled.outputs, {
      ...options,
      thinning,
      partEffort: 1,
    });
    const alone = rowsProblem(sampled.problem, problemShape(sampled.problem), left);
    const { selection, ...rest } = sampled.sample;
    const rows = { ...rest, selection: { queries: alone.rows!.queries, of: selection.of } };
    const given = { out: sampledQuantity(quantities[0], out, shape, rows), lse: null };
    const expected = structureOf(judgeOutputs(alone, given, { ...options, partEffort: 1 }));
    const found = structureOf(thin);
    expect(found.length).toBeGreaterThan(5);
    expect(found.map(({ test, scope }) => [test, scope])).toEqual(
      expected.map(({ test, scope }) => [test, scope]),
    );
    // Parts end after other rows here: sums over a head may round otherwise, and tiles are other ones.
    found.forEach((result, i) => {
      if (result.scope === 'tile') return;
      const { statistic, threshold, head, firstRow, lastRow } = expected[i];
      expect(result).toMatchObject({ head, firstRow, lastRow });
      expect(result.statistic).toBeCloseTo(statistic, 12);
      expect(result.threshold).toBeCloseTo(threshold, 12);
    });
  });

  inTurn('leave every exact value, bound and error as it is', () => {
    const judge = (some: object) =>
      auditOutputs(sampled.problem, sampled.outputs, { ...options, partEffort: 1, ...some });
    const [thin, whole] = [judge({ thinning }), judge({})];
    expect(whole.statistics).toBeUndefined();
    expect(thin.statistics).toBe(left.length);
    expect(thin.outputs.out.values).toEqual(whole.outputs.out.values);
    expect(thin.outputs.out.elements).toEqual(whole.outputs.out.elements);
    expect(thin.outputs.out.spread).toEqual(whole.outputs.out.spread);
    expect(thin.outputs.out.error).toEqual(whole.outputs.out.error);
    expect(thin.baselines.allclose).toEqual(whole.baselines.allclose);
    const [rule, ofAll] = [thin, whole].map(({ baselines }) => baselines.flashAttention);
    expect(rule.pass).toBe(true);
    expect(rule.lowPrecisionMaxError).toBeLessThanOrEqual(ofAll.lowPrecisionMaxError);
  });

  it('are of all rows unless a head has very many keys, and of 16 at least', () => {
    const ofKeys = (keys: number, rows: number) =>
      planThinning({ ...shape, heads: 4, keys }, { rows: 4 * rows, seed: testSeed });
    expect(ofKeys(2 ** 15, 4096)).toBeNull();
    expect(ofKeys(2 ** 17, 31)).toBeNull();
    for (const rows of [32, 63, 64, 100, 128, 4096]) {
      const planned = ofKeys(2 ** 17, rows)!;
      expect(thinnedRows(rows, planned)).toBeGreaterThanOrEqual(16);
      expect(planned).toEqual(ofKeys(2 ** 17, rows));
      expect(128 % planned.every).toBe(0);
    }
  });
});
