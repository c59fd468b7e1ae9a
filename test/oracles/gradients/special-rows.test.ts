import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readOperand } from '../../../oracles/attention/operand.js';
import { specialGradients } from '../../../oracles/gradients/special-row.js';
import { scaled } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';

const [rows, keys, dim, vDim] = [2, 4, 2, 2];

/** The row that is looked at: the other one must not matter. */
const row = 1;

const finite = fc.constantFrom(-2, -1, -0.5, 0, 0.5, 1, 2);
const special = fc.constantFrom(Infinity, Infinity, -Infinity, -Infinity, NaN);
/** Few elements are special, so that rows are not lost at once; half of the tensors have none. */
const elements = (length: number) =>
  fc.oneof(
    { weight: 1, arbitrary: fc.array(finite, { minLength: length, maxLength: length }) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.oneof({ weight: 4, arbitrary: finite }, { weight: 1, arbitrary: special }),
        { minLength: length, maxLength: length },
      ),
    },
  );

const drawn = fc.record({
  // Queries of one sign make an infinity in a key a weight of 0 as often as a lost row.
  q: fc.oneof(
    elements(rows * dim),
    fc.array(fc.constantFrom(0.5, 1, 2), { minLength: rows * dim, maxLength: rows * dim }),
  ),
  k: elements(keys * dim),
  v: elements(keys * vDim),
  dO: elements(rows * vDim),
  seen: fc.subarray([0, 1, 2, 3], { minLength: 1 }),
  kept: fc.subarray([0, 1, 2, 3], { minLength: 2 }),
  scale: fc.constantFrom(0.5, -1),
  softcap: fc.constantFrom(null, null, 2),
});

type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never;

/** The row's formulas in fp64, as IEEE 754 has them. */
function byFormulas({ q, k, v, dO, seen, kept, scale, softcap }: Drawn) {
  const dot = (a: readonly number[], b: readonly number[], from: number, length: number) =>
    Array.from({ length }, (_, c) => a[row * length + c] * b[from * length + c]).reduce(
      (sum, x) => sum + x,
      0,
    );
  const raw = seen.map((key) => dot(q, k, key, dim) * scale);
  const tanh = raw.map((score) => (softcap === null ? 0 : Math.tanh(score / softcap)));
  const scores = raw.map((score, j) => (softcap === null ? score : softcap * tanh[j]));
  const most = Math.max(...scores);
  // A row of −∞ alone has no weights.
  const sizes = scores.map((score) => (most === -Infinity ? 0 : Math.exp(score - most)));
  const total = most === -Infinity ? 1 : sizes.reduce((sum, x) => sum + x, 0);
  const p = sizes.map((size) => size / total);
  const isKept = seen.map((key) => (kept.includes(key) ? 1 : 0));
  const dP = seen.map((key, j) => dot(dO, v, key, vDim) * isKept[j]);
  const mean = p.reduce((sum, weight, j) => sum + weight * dP[j], 0);
  const dS = p.map((weight, j) => weight * (dP[j] - mean));
  const dT = dS.map((x, j) => x * (1 - tanh[j] ** 2) * scale);
  const inRow = (numbers: readonly number[], at: number, length: number) =>
    numbers.slice(at * length, (at + 1) * length);
  return {
    raw,
    scores,
    mean,
    score: dS,
    query: Array.from({ length: dim }, (_, c) =>
      seen.reduce((sum, key, j) => sum + dT[j] * k[key * dim + c], 0),
    ),
    key: dT.map((x) => inRow(q, row, dim).map((y) => x * y)),
    value: p.map((weight, j) => inRow(dO, row, vDim).map((y) => weight * isKept[j] * y)),
  };
}

/** The runs of some keys. */
const rangesOf = (seen: readonly number[]) => seen.map((key) => ({ begin: key, end: key + 1 }));

/** Adds kinds up by where they are, and tells the sum of a place: 0 without any. */
function recorder() {
  const sums = new Map<string, number>();
  return {
    add: (kind: number, ...place: readonly number[]) =>
      void sums.set(`${place}`, (sums.get(`${place}`) ?? 0) + kind),
    of: (...place: readonly number[]) => sums.get(`${place}`) ?? 0,
    places: () => [...sums].filter(([, kind]) => kind !== 0).map(([place]) => place),
  };
}

/** An infinity or a NaN as it is, 0 for all finite numbers. */
const kindOf = (x: number) => (Number.isFinite(x) ? 0 : x);

it('what special values make of a row is what IEEE 754 makes of its formulas', () => {
  fc.assert(
    fc.property(drawn, (of) => {
      const { q, k, v, dO, seen, kept, scale, softcap } = of;
      const operand = (values: readonly number[], count: number, width: number) =>
        readOperand(
          tensor('fp32', [count, width], (at) => values[at]),
          0,
          count,
          width,
        );
      const operands = {
        head: 0,
        query: operand(q, rows, dim),
        keys: operand(k, keys, dim),
        values: operand(v, keys, vDim),
        dout: operand(dO, rows, vDim),
      };
      const found = { query: recorder(), key: recorder(), value: recorder() };
      const [score, mean] = [recorder(), recorder()];
      const left = specialGradients(
        operands,
        row,
        rangesOf(seen),
        { law: { scale, softcap, addend: null }, isKept: (key) => kept.includes(key) },
        {
          query: (column, kind) => found.query.add(kind, column),
          key: (key, column, kind) => found.key.add(kind, key, column),
          value: (key, column, kind) => found.value.add(kind, key, column),
          score: (key, kind) => score.add(kind, key),
          mean: (kind) => mean.add(kind),
        },
      );
      const wanted = byFormulas(of);
      expect(mean.of()).toBe(kindOf(wanted.mean));
      wanted.query.forEach((x, c) => expect(found.query.of(c)).toBe(kindOf(x)));
      seen.forEach((key, j) => {
        expect(score.of(key)).toBe(kindOf(wanted.score[j]));
        wanted.key[j].forEach((x, c) => expect(found.key.of(key, c)).toBe(kindOf(x)));
        wanted.value[j].forEach((x, c) => expect(found.value.of(key, c)).toBe(kindOf(x)));
      });
      // Nothing is poisoned elsewhere.
      const places = (width: number) =>
        seen.flatMap((key) => Array.from({ length: width }, (_, c) => `${key},${c}`));
      expect(['0', '1']).toEqual(expect.arrayContaining(found.query.places()));
      expect(seen.map(String)).toEqual(expect.arrayContaining(score.places()));
      expect(places(dim)).toEqual(expect.arrayContaining(found.key.places()));
      expect(places(vDim)).toEqual(expect.arrayContaining(found.value.places()));

      const inputs = [
        ...[q.slice(row * dim), dO.slice(row * vDim)],
        ...seen.flatMap((key) => [
          k.slice(key * dim, (key + 1) * dim),
          v.slice(key * vDim, (key + 1) * vDim),
        ]),
      ];
      if (inputs.flat().every(Number.isFinite)) {
        expect(left).toBeNull();
        return;
      }
      const isLost = wanted.scores.some((x) => Number.isNaN(x) || x === Infinity);
      const weighted = seen.filter((_, j) => !isLost && wanted.scores[j] > -Infinity);
      expect(left).toEqual({
        visible: Int32Array.from(weighted),
        infinite: Int8Array.from(weighted, (key) => {
          const score = wanted.raw[seen.indexOf(key)];
          return Number.isFinite(score) ? 0 : Math.sign(score);
        }),
        isWhole: wanted.raw.every(Number.isFinite),
      });
    }),
    { numRuns: scaled(1000) },
  );
});
