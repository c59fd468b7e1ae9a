import { expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../../oracles/index.js';
import { createQuantityBounds, keepBounds } from '../../../src/audit/element-bounds.js';
import {
  emptyReference,
  fillReference,
  referenceRows,
} from '../../../src/audit/parts/reference-rows.js';
import { thinnedReference } from '../../../src/audit/parts/thinning.js';
import { drawProblem } from '../declared-problems.js';

const heads = 2;
const sizes = { heads, queries: 24, keys: 40, dim: 16 };
const ofForward = attentionOracle(drawProblem(3, 0, Infinity, sizes));
const { shape, quantities } = ofForward;
/** With quantities that the library does not know: −O and −LSE. */
const reference: AttentionReference = {
  ...ofForward,
  quantities: {
    ...quantities,
    negated: { ...quantities.out, values: quantities.out.values.map((x) => -x) },
    'negated-lse': { ...quantities.lse, values: quantities.lse.values.map((x) => -x) },
  },
};

it('cuts every quantity of a reference into parts and joins them again', () => {
  const whole = emptyReference(shape);
  for (let head = 0; head < heads; head++) {
    const ofHead = { ...shape, heads: 1, kvHeads: 1, groupSize: 1 };
    const first = head * shape.queries;
    fillReference(whole, referenceRows(reference, ofHead, first), first);
  }
  expect(whole.quantities).toEqual(reference.quantities);
});

it('leaves of every quantity the same rows', () => {
  const {
    out,
    lse,
    negated,
    'negated-lse': negatedLse,
  } = thinnedReference(reference, {
    every: 4,
    first: 1,
  }).quantities;
  expect(negated?.values).toEqual(out.values.map((x) => -x));
  expect(negatedLse?.values).toEqual(lse.values.map((x) => -x));
  expect(lse.values[0]).toBe(quantities.lse.values[1]);
});

it('keeps bounds of the quantities that have some, and of no others', () => {
  const all = createQuantityBounds(reference);
  const rows = heads * shape.queries;
  const part = createQuantityBounds(reference);
  for (const [i, name] of (['out', 'lse', 'negated'] as const).entries())
    part[name]?.total.fill(i + 1);
  Reflect.deleteProperty(part, 'negated-lse');
  keepBounds(all, part, { rows, first: shape.queries, count: shape.queries });
  expect(all.lse.total[shape.queries - 1]).toBe(0);
  expect(all.lse.total[shape.queries]).toBe(2);
  expect(all['negated']?.total[shape.queries * shape.vDim]).toBe(3);
  expect(Object.keys(all)).toEqual(['out', 'lse', 'negated']);
});
