import { expect, it } from 'vitest';
import {
  attentionOracle,
  forEachWeightTile,
  wholeMatrices,
  WorkingMemories,
} from '../../../../oracles/index.js';
import { randomValues } from '../../../../properties/problems/values.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import {
  problemMask,
  problemShape,
  type Mask,
  type Problem,
} from '../../../../src/problem/index.js';
import { scaled, testSeed } from '../../../setup/effort.js';
import { filledProblem, tensor } from '../../../setup/problems.js';
import { readFeatures } from '../reference-features.js';

const [batch, heads, kvHeads, queries, keys, dim, vDim] = [2, 2, 1, 66, 135, 3, 5];
const rowCount = batch * heads * queries;

/** A problem of two batches, of which some rows see no key, one is NaN and one has nothing but scores of −∞. */
function drawnProblem(seed: number): Problem {
  const random = randomValues(seed);
  const has = () => random.integer(0, 1) === 1;
  const kept = { shape: [queries, keys], data: new Uint8Array(queries * keys) };
  kept.data.forEach((_, at) => (kept.data[at] = random.integer(0, 1)));
  // Whole tiles of keys that a block of rows does not see, and rows with gaps.
  const seen = [0, 1, 2].map(has);
  const mask = { shape: [queries, keys], data: new Uint8Array(queries * keys) };
  mask.data.forEach((_, at) => {
    const [row, key] = [Math.floor(at / keys), at % keys];
    mask.data[at] = row !== 5 && (row >= 64 || seen[key >> 6]) && random.uniform() < 0.8 ? 1 : 0;
  });
  const problem = filledProblem(
    { batch, heads, kvHeads, queries, keys, dim, vDim, format: 'fp32' },
    random.normal,
    {
      scale: 0.7,
      ...(has() ? { mask } : { causal: true }),
      ...(has() ? { dropout: { kept, probability: 0.25 } } : {}),
      ...(has() ? { bias: tensor('fp32', [heads, queries, keys], random.normal) } : {}),
      ...(has() ? { softcap: 2 } : {}),
      ...(has() ? { sink: { logits: tensor('fp32', [heads], random.normal), inLse: has() } } : {}),
    },
  );
  problem.q.data[0] = NaN;
  // Values of very different sizes, key by key.
  problem.v.data.forEach(
    (x, at) => (problem.v.data[at] = x * 2 ** (45 * ((Math.floor(at / vDim) % 5) - 2))),
  );
  return problem;
}

/** The problem with another mask, whose rows see one range of keys each. */
function otherMask(): Mask {
  return {
    ranges: (head, query) =>
      (head + query) % 9 === 0 ? [] : [{ begin: query, end: Math.min(keys, query + 40 + head) }],
  };
}

it('walks over the weights by their definition, with what dropout applies and the products with each value', () => {
  for (let run = 0; run < scaled(3); run++) {
    const problem = drawnProblem(testSeed + run);
    const { scale, softcap, dropout, sink } = problem;
    const mask = run % 2 === 0 ? undefined : otherMask();
    const whole = mask ?? problemMask(problem, problemShape(problem));
    const reference = attentionOracle(problem, mask === undefined ? {} : { mask });
    const features = readFeatures(problem);
    const [q, k, v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
    const logits = sink === undefined ? null : decodeTensor(sink.logits);
    const random = randomValues(run);
    const projected = [0, 1].map(() =>
      Float64Array.from(
        { length: rowCount * vDim },
        (_, at) => random.normal() * 2 ** (250 * ((Math.floor(at / vDim) % 5) - 2)),
      ),
    );
    const dot = (a: Float64Array, i: number, b: Float64Array, j: number, width: number) => {
      let sum = 0;
      for (let t = 0; t < width; t++) sum += a[i * width + t] * b[j * width + t];
      return sum;
    };
    /** Normalised weights of a row by key; none of a row with a NaN. */
    const weightsOf = (head: number, i: number) => {
      const [b, h] = [Math.floor(head / heads), head % heads];
      const weights = new Map<number, number>();
      const row = head * queries + i;
      if (row === 0) return weights;
      const place = features.place(b, h, i);
      for (const { begin, end } of whole.ranges(head, i))
        for (let j = begin; j < end; j++) {
          const score = scale * dot(q, row, k, b * keys + j, dim);
          const capped = softcap === null ? score : softcap * Math.tanh(score / softcap);
          weights.set(j, Math.exp(capped + features.addend(place, j)[0]));
        }
      const ofSink = logits === null ? 0 : Math.exp(logits[h]);
      const sum = [...weights.values()].reduce((x, y) => x + y, ofSink);
      weights.forEach((weight, j) => weights.set(j, weight / sum));
      return weights;
    };
    const rows = Array.from({ length: rowCount }, (_, row) =>
      weightsOf(Math.floor(row / queries), row % queries),
    );
    const memories = new WorkingMemories();
    const sizes = projected.map((matrix) => matrix.map(Math.abs));
    const ofValues = v.map(Math.abs);
    const matrices = wholeMatrices(projected, reference.shape);
    // The second walk has the weights of the first one, if the mask is the problem's own.
    for (let walk = 0; walk < 2; walk++) {
      const format = walk === 0 ? 'fp64' : 'fp32';
      const calls: string[] = [];
      const expected: string[] = [];
      const blocks = Array.from({ length: batch * heads }, (_, head) =>
        [0, 64].map((first) => ({ head, first })),
      ).flat();
      for (const { head, first } of blocks) {
        const count = Math.min(64, queries - first);
        expected.push(`begin ${head} ${first} ${count}`);
        for (const tile of [0, 1, 2])
          if (
            Array.from({ length: count }, (_, i) => rows[head * queries + first + i]).some((of) =>
              [...of.keys()].some((key) => key >> 6 === tile),
            )
          )
            expected.push(`tile ${first} ${64 * tile} ${count} ${Math.min(64, keys - 64 * tile)}`);
        expected.push(`end ${head} ${first} ${count}`);
      }
      let current = 0;
      forEachWeightTile(
        problem,
        reference,
        {
          begin: (head, first, count) => {
            current = head;
            calls.push(`begin ${head} ${first} ${count}`);
          },
          end: (head, first, count) => calls.push(`end ${head} ${first} ${count}`),
          visit: ({
            firstRow,
            rows: count,
            firstKey,
            keys: width,
            stride,
            weights,
            applied,
            projections,
          }) => {
            calls.push(`tile ${firstRow} ${firstKey} ${count} ${width}`);
            const b = Math.floor(current / heads);
            for (let i = 0; i < count; i++) {
              const row = current * queries + firstRow + i;
              const place = features.place(b, current % heads, firstRow + i);
              const seesTile = [...rows[row].keys()].some(
                (key) => key >= firstKey && key < firstKey + width,
              );
              for (let j = 0; j < width; j++) {
                const [at, key] = [i * stride + j, firstKey + j];
                const weight = rows[row].get(key) ?? 0;
                const isKept = features.isKept(place, key);
                const share = 1 - (dropout?.probability ?? 0);
                const found = [weights[at], applied[at]];
                [weight, isKept ? weight / share : 0].forEach((exact, which) => {
                  const isClose = Math.abs(found[which] - exact) <= 2 ** -38 * exact;
                  if (!isClose) expect(found[which], `row ${row}, key ${key}`).toBe(exact);
                });
                // Products of rows that see no key of the tile are nobody's.
                if (!seesTile) continue;
                projected.forEach((matrix, which) => {
                  const product = dot(matrix, row, v, b * keys + key, vDim);
                  const magnitudes = dot(sizes[which], row, ofValues, b * keys + key, vDim);
                  const radius =
                    (vDim + 3) * (format === 'fp64' ? 2 ** -53 : 2 ** -24) * magnitudes;
                  const isClose = Math.abs(projections[which][at] - product) <= radius;
                  if (!isClose) expect(projections[which][at], `projection ${which}`).toBe(product);
                });
              }
            }
          },
        },
        { ...(mask === undefined ? {} : { mask }), projected: { ...matrices, format }, memories },
      );
      expect(calls).toEqual(expected);
    }
  }
});
