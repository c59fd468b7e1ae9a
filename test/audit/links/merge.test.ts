import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import { auditMerge, type GivenMerge } from '../../../src/audit/index.js';
import { decodeToFloat64, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { scaled, testSeed } from '../../setup/effort.js';

const shape = { batch: 2, heads: 3, queries: 5, dim: 8 };
const rows = shape.batch * shape.heads * shape.queries;
const f = Math.fround;

/** Partial results of some parts: LSEs spread over some units, empty parts among them. */
function drawParts(seed: number, splits: number, emptyRows = true): GivenMerge['parts'] {
  const random = randomValues(seed);
  const lse = Float64Array.from({ length: splits * rows }, () => f(3 + 2 * random.normal()));
  if (emptyRows)
    for (let split = 0; split < splits; split++) {
      lse[split * rows] = -Infinity;
      if (split > 0) lse[split * rows + 1] = -Infinity;
    }
  const out = Float64Array.from({ length: splits * rows * shape.dim }, (_, i) =>
    lse[Math.floor(i / shape.dim)] === -Infinity ? 0 : f(random.normal()),
  );
  return { splits, rows, dim: shape.dim, layout: shape, out, lse };
}

/** What a kernel makes of parts. */
interface Merged {
  readonly out: Float64Array;
  readonly lse: Float64Array;
}

/** A mistake of the kernel below. */
interface Mistake {
  /** The LSE by which a part is weighed. */
  readonly lseAt?: (split: number, row: number) => number;
  readonly lseOf?: (x: number) => number;
  readonly weight?: (x: number) => number;
  readonly factor?: (split: number) => number;
  readonly divides?: boolean;
  /** What rows whose parts all have no key are. */
  readonly emptyOut?: number;
  readonly mergedLse?: (x: number, ofParts: readonly number[]) => number;
}

/** A merge in fp32, part after part, the output rounded to bf16. */
function merge({ splits, out, lse }: GivenMerge['parts'], mistake: Mistake = {}): Merged {
  const {
    lseAt = (split, row) => lse[split * rows + row] ?? NaN,
    lseOf = (x) => x,
    weight = (x) => f(Math.exp(x)),
    factor = () => 1,
    divides = true,
    emptyOut = 0,
    mergedLse = (x) => x,
  } = mistake;
  const merged = new Float64Array(rows * shape.dim);
  const mergedLses = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const own = Array.from({ length: splits }, (_, split) => lseOf(lseAt(split, row)));
    const largest = Math.max(...own);
    const weights = own.map((x, split) =>
      largest === -Infinity ? 0 : f(factor(split) * weight(f(x - largest))),
    );
    const total = weights.reduce((a, b) => f(a + b), 0);
    const exact = largest === -Infinity ? -Infinity : f(largest + f(Math.log(total)));
    mergedLses[row] = mergedLse(
      exact,
      Array.from({ length: splits }, (_, s) => lse[s * rows + row] ?? NaN),
    );
    for (let i = 0; i < shape.dim; i++) {
      let sum = 0;
      weights.forEach((one, split) => {
        sum = f(sum + f(one * (out[(split * rows + row) * shape.dim + i] ?? 0)));
      });
      merged[row * shape.dim + i] = total === 0 ? emptyOut : divides ? f(sum / total) : sum;
    }
  }
  return { out: merged, lse: mergedLses };
}

function judge(parts: GivenMerge['parts'], { out, lse }: Merged) {
  const values = decodeToFloat64(encodeFromFloat64(formats.bf16, out), formats.bf16);
  return auditMerge({
    shape,
    parts,
    out: { format: 'bf16', values },
    lse: { format: 'fp32', values: lse },
  });
}

const at = (parts: GivenMerge['parts'], split: number, row: number) =>
  parts.lse[((split + parts.splits) % parts.splits) * rows + row] ?? NaN;
const nextRow = (row: number, by: number) =>
  row - (row % shape.queries) + ((row + by + shape.queries) % shape.queries);
const nextHead = (row: number, by: number) => {
  const head = Math.floor(row / shape.queries) % shape.heads;
  return row + (((head + by + shape.heads) % shape.heads) - head) * shape.queries;
};

/** Mistakes by the name of their cause, of parts that all have keys unless it is about those. */
const mistakes: Readonly<Record<string, (parts: GivenMerge['parts']) => Mistake>> = {
  'base-2': () => ({ weight: (x) => f(2 ** x) }),
  'base-e': () => ({ weight: (x) => f(Math.exp(x * Math.LOG2E)) }),
  'equal-weights': () => ({ weight: () => 1 }),
  'part-missing': () => ({ factor: (split) => (split === 1 ? 0 : 1) }),
  'part-twice': () => ({ factor: (split) => (split === 2 ? 2 : 1) }),
  'part-alone': () => ({ factor: (split) => (split === 0 ? 1 : 0) }),
  'lse-of-next-part': (parts) => ({ lseAt: (split, row) => at(parts, split + 1, row) }),
  'lse-of-previous-part': (parts) => ({ lseAt: (split, row) => at(parts, split - 1, row) }),
  'lse-of-next-row': (parts) => ({ lseAt: (split, row) => at(parts, split, nextRow(row, 1)) }),
  'lse-of-previous-row': (parts) => ({ lseAt: (split, row) => at(parts, split, nextRow(row, -1)) }),
  'lse-of-next-head': (parts) => ({ lseAt: (split, row) => at(parts, split, nextHead(row, 1)) }),
  'lse-of-previous-head': (parts) => ({
    lseAt: (split, row) => at(parts, split, nextHead(row, -1)),
  }),
  'squared-weights': () => ({ weight: (x) => f(Math.exp(2 * x)) }),
  'not-divided': () => ({ divides: false }),
  'parts-added': () => ({ weight: () => 1, divides: false }),
  'lse-in-bf16': () => ({
    lseOf: (x) =>
      decodeToFloat64(encodeFromFloat64(formats.bf16, Float64Array.of(x)), formats.bf16)[0] ?? NaN,
  }),
  'merged-lse-base-2': () => ({ mergedLse: (x) => f(x * Math.LOG2E) }),
  'merged-lse-largest': () => ({ mergedLse: (_, parts) => Math.max(...parts) }),
  'merged-lse-last': () => ({ mergedLse: (_, parts) => parts.at(-1) ?? NaN }),
  'merged-lse-without-maximum': () => ({ mergedLse: (x, parts) => f(x - Math.max(...parts)) }),
};

/** Mistakes that parts without keys show. */
const mistakesOfNothing: typeof mistakes = {
  'empty-part-counted': () => ({ lseOf: (x) => (x === -Infinity ? 0 : x) }),
  'merged-lse-zero': () => ({ mergedLse: (x) => (x === -Infinity ? 0 : x) }),
  'merged-lse-plus-infinity': () => ({ mergedLse: (x) => (x === -Infinity ? Infinity : x) }),
  'empty-rows-nan': () => ({ emptyOut: NaN }),
  'merged-lse-nan': () => ({ mergedLse: (x) => (x === -Infinity ? NaN : x) }),
};

describe('a merge', () => {
  it('of a correct kernel passes', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 9 }), fc.boolean(), (seed, splits, empty) => {
        const parts = drawParts(seed, splits, empty);
        expect(judge(parts, merge(parts)).verdict.sentence).toMatch(/^PASS/);
      }),
      { seed: testSeed, numRuns: scaled(200) },
    );
  });

  it.each([...Object.keys(mistakes), ...Object.keys(mistakesOfNothing)])(
    'of a kernel with a mistake fails, and it is named: %s',
    (name) => {
      for (let i = 0; i < 3; i++) {
        const parts = drawParts(testSeed + i, 4, Object.hasOwn(mistakesOfNothing, name));
        const mistake = (mistakes[name] ?? mistakesOfNothing[name])!(parts);
        const { verdict } = judge(parts, merge(parts, mistake));
        expect(verdict.status).toBe('FAIL');
        const { id, equivalents } = verdict.diagnosis!;
        expect([id, ...equivalents], verdict.sentence).toContain(name);
      }
    },
  );

  it('fails with a part that weighs 5 % too much in one head, with the place', () => {
    const parts = drawParts(testSeed, 4, false);
    const { out, lse } = merge(parts);
    const wrong = merge(parts, { factor: (split) => (split === 0 ? 1.05 : 1) });
    const isOfHead = (row: number) => Math.floor(row / shape.queries) % shape.heads === 1;
    const mixed = out.map((x, i) =>
      isOfHead(Math.floor(i / shape.dim)) ? (wrong.out[i] ?? 0) : x,
    );
    const { verdict } = judge(parts, { out: mixed, lse });
    expect(verdict).toMatchObject({ status: 'FAIL', diagnosis: { id: 'unexplained' } });
    expect(verdict.sentence).toMatch(/head 1, query/);
  });

  it('is not said to have rows without keys as 0/0 where a row with keys is NaN too', () => {
    const parts = drawParts(testSeed, 4);
    const { out, lse } = merge(parts, { emptyOut: NaN });
    const { verdict } = judge(parts, { out: out.fill(NaN, shape.dim, 2 * shape.dim), lse });
    expect(verdict).toMatchObject({ status: 'FAIL', diagnosis: { id: 'unexplained' } });
  });

  it('is no pass where nothing has a bound: NaN in, NaN out, and LSEs that fp32 cannot weigh', () => {
    const parts = drawParts(testSeed, 3, false);
    const nan = { ...parts, lse: parts.lse.map(() => NaN) };
    const all = {
      out: new Float64Array(rows * shape.dim).fill(NaN),
      lse: new Float64Array(rows).fill(NaN),
    };
    expect(judge(nan, all).verdict.status).toBe('NOT JUDGED');
    const huge = { ...parts, lse: parts.lse.map((x) => 1e9 + 1e7 * x) };
    const zeros = { out: new Float64Array(rows * shape.dim), lse: huge.lse.slice(0, rows) };
    expect(judge(huge, zeros).verdict.status).not.toBe('PASS');
    const one = { ...parts, lse: parts.lse.map((x, i) => (i % rows === 4 ? NaN : x)) };
    const made = merge(one);
    const { verdict, checks } = judge(one, made);
    expect(verdict.status).toBe('PASS');
    expect(checks[0]).toMatchObject({ checked: rows - 1 });
    expect(verdict.notes.join()).toContain('1 rows are not judged');
  });

  describe('whose O is multiplied by a factor', () => {
    /** O times a factor in fp32, stored in e4m3 or bf16, saturating as conversions do. */
    const stored = (parts: GivenMerge['parts'], format: 'e4m3' | 'bf16', by: number) => {
      const { maxFinite } = formats[format];
      const values = merge(parts).out.map((x) =>
        Math.min(maxFinite, Math.max(-maxFinite, f(x * f(by)))),
      );
      return {
        format,
        values: decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format]),
      };
    };
    const draw = fc.tuple(
      fc.nat(),
      fc.constantFrom('e4m3' as const, 'bf16' as const),
      fc.double({ min: -12, max: 12, noNaN: true }).map((x) => f(2 ** x)),
    );

    it('passes where the kernel divides by it, cut off at the largest number of fp8', () => {
      fc.assert(
        fc.property(draw, ([seed, format, scale]) => {
          const parts = drawParts(seed, 3);
          const out = stored(parts, format, f(1 / scale));
          const { verdict } = auditMerge({ shape, parts, out, lse: null, factor: 1 / scale });
          expect(verdict.sentence).toMatch(/^PASS/);
        }),
        { seed: testSeed, numRuns: scaled(200) },
      );
    });

    it.each([
      ['factor-missing', () => 1],
      ['factor-inverted', (scale: number) => 1 / scale],
      ['factor-twice', (scale: number) => scale ** 2],
    ] as const)('fails by its cause: %s', (id, of) => {
      for (const factor of [3, 0.375]) {
        const parts = drawParts(testSeed, 3);
        const out = stored(parts, 'bf16', of(factor));
        const { verdict } = auditMerge({ shape, parts, out, lse: null, factor });
        expect(verdict).toMatchObject({ status: 'FAIL', diagnosis: { id } });
      }
    });

    it('fails with an error of 2 % in one element, and where a number beyond the largest is another', () => {
      const parts = drawParts(testSeed, 3, false);
      const right = stored(parts, 'bf16', 5);
      const wrong = { ...right, values: right.values.map((x, i) => (i === 7 ? x * 1.02 : x)) };
      const judged = (out: GivenMerge['out'], factor: number) =>
        auditMerge({ shape, parts, out, lse: null, factor }).verdict.status;
      expect([judged(right, 5), judged(wrong, 5)]).toEqual(['PASS', 'FAIL']);
      const cut = stored(parts, 'e4m3', 4000);
      const at = cut.values.indexOf(448);
      const below = { ...cut, values: cut.values.map((x, i) => (i === at ? 416 : x)) };
      expect([judged(cut, 4000), judged(below, 4000)]).toEqual(['PASS', 'FAIL']);
      // Where even the error is beyond the largest, zeros are no merge.
      const zeros = { ...cut, values: cut.values.map(() => 0) };
      expect(judged(zeros, 1e12)).toBe('FAIL');
    });
  });

  it('is no pass without an output', () => {
    const parts = drawParts(testSeed, 3);
    const { verdict } = auditMerge({ shape, parts, out: null, lse: null });
    expect(verdict.status).toBe('NOT JUDGED');
  });
});
