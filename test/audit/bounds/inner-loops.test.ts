import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import {
  accumulatorLoss,
  chainedDot,
  chainError,
  columnMoments,
  scanKeys,
  weighKey,
  weightErrorOf,
} from './loop-definitions.js';
import {
  createBoundMemory,
  sumsPerRow,
  tileRows,
  type BoundMemory,
} from '../../../src/audit/bounds/memory.js';
import { formats, smallestNormal, ulp, type FormatName } from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import { sampled } from '../../setup/effort.js';

const dim = 12;
/** log2 of a weight per unit of score. */
const factor = 0.75;
const offset = 2;
const binsPerOctave = 256;
const errorsOf = { polynomial: 8.8e-5, hardware: 1.44e-7 };

interface Row {
  readonly low: number;
  readonly high: number;
  readonly shift: number;
  readonly gain: number;
  readonly uncertainty: number;
  /** Where weights are not known: relative and absolute. */
  readonly relative: number;
  readonly least: number;
}

/** A tile of random scores and values in memory, with every number that the inner loops read. */
function randomTile(name: FormatName, seed: number) {
  const memory = createBoundMemory(4, dim, 64);
  const { normal, integer, uniform } = randomValues(seed);
  // Few different scores, so that equal ones occur.
  const scores = Float64Array.from({ length: tileRows ** 2 }, () => integer(-60, 0) / 7);
  const scoreErrors = scores.map(() => 1e-6 * uniform());
  const values = Float64Array.from({ length: tileRows * memory.vStride }, normal);
  const isPolynomial = Array.from({ length: tileRows }, () => uniform() < 0.3);
  const isUnknown = (i: number) => i % 5 === 4;
  const rows = Array.from({ length: tileRows }, (_, i): Row => {
    const low = integer(0, 20);
    return {
      low,
      high: integer(low, 64),
      shift: 3 * uniform() - 1,
      gain: 2 ** -integer(0, 9),
      uncertainty: i % 3 === 0 ? 1e-3 : 1e-7,
      relative: isUnknown(i) ? 0.01 : 0,
      least: isUnknown(i) ? 1e-9 : 0,
    };
  });
  memory.scores.view.set(scores);
  memory.scoreError.view.set(scoreErrors);
  memory.values.view.set(values);
  memory.tables.view.fill(0);
  memory.largest.view.fill(-Infinity);
  memory.errors.view.fill(0);
  rows.forEach((row, i) => {
    // The scan counts all places.
    memory.low.view[i] = 0;
    memory.high.view[i] = 64;
    for (const key of ['shift', 'gain', 'uncertainty', 'relative', 'least'] as const)
      memory[key].view[i] = row[key];
  });
  const { kernels } = memory;
  kernels.scanScores(memory.tile, 64, factor, binsPerOctave);
  // A score of NaN is that of a key that the row does not see.
  rows.forEach(({ low, high }, i) => {
    memory.scores.view.fill(NaN, 64 * i, 64 * i + low).fill(NaN, 64 * i + high, 64 * (i + 1));
  });
  isPolynomial.forEach((isOne, key) => {
    memory.isPolynomial.view[key] = isOne ? 1 : 0;
    memory.exponential.view[key] = isOne ? errorsOf.polynomial : errorsOf.hardware;
  });
  const format = formats[name];
  const rules = memory.rules.write({
    factor,
    offset,
    smallestNormal: smallestNormal(format),
    ulpOfOne: ulp(format, 1),
    maxFinite: format.maxFinite,
    saturates: name === 'e4m3',
    binsPerOctave,
  });
  kernels.weigh(memory.tile, 64, rules);
  return { memory, name, scores, scoreErrors, values, isPolynomial, rows };
}

type Tile = ReturnType<typeof randomTile>;

/** One weight, by the definitions. */
function weightOf({ name, scores, scoreErrors, isPolynomial, rows }: Tile, i: number, j: number) {
  const row = rows[i];
  const isSeen = row.low <= j && j < row.high;
  const key = {
    score: isSeen ? scores[64 * i + j] : NaN,
    scoreError: scoreErrors[64 * i + j],
    exponential: isPolynomial[j] ? errorsOf.polynomial : errorsOf.hardware,
  };
  const same = scores.subarray(64 * i, 64 * i + 64).filter((s) => s === scores[64 * i + j]).length;
  return {
    ...weighKey(key, row, { factor, offset }, formats[name]),
    same,
    natural: key.scoreError * Math.LN2,
    wrong: weightErrorOf(key),
  };
}

const near = (got: number, wanted: number, share = 1e-11) => {
  if (!(Math.abs(got - wanted) <= share * Math.abs(wanted) + 1e-300)) expect(got).toBe(wanted);
};

/** As `expect`, which takes its time to be called ten thousand times. */
const atMost = (got: number, most: number) => {
  if (!(got <= most)) expect(got).toBeLessThanOrEqual(most);
};

const all64 = Array.from({ length: 64 }, (_, i) => i);

describe.each(['bf16', 'fp16', 'e4m3'] as const)('the inner loops, weights in %s', (name) => {
  // One tile of three, by TEST_SEED: 4096 weights.
  const tiles = sampled([1, 2, 3], 1).map((seed) => randomTile(name, seed));
  const weights = lazily(() =>
    tiles.map((tile) => all64.map((i) => all64.map((j) => weightOf(tile, i, j)))),
  );

  it('weigh: weights, and how far rounding moves them', () => {
    for (const [t, tile] of tiles.entries())
      for (const i of all64)
        for (const j of all64) {
          const { weight: w, rounding: moved, known } = weights()[t][i][j];
          near(tile.memory.scores.view[64 * i + j], w);
          // Where the rounding is a difference of two near numbers it has the error of p.
          const got = tile.memory.rounding.view[64 * i + j];
          atMost(Math.abs(got - moved), 1e-11 * moved + 1e-13 * w);
          const gotKnown = tile.memory.known.view[64 * i + j];
          atMost(Math.abs(gotKnown - known), 1e-13 * w);
          atMost(Math.abs(gotKnown), got * (1 + 1e-11));
        }
  });

  it('weigh: variances, equal weights counted together', () => {
    let [others, total] = [0, 0];
    for (const [t, tile] of tiles.entries())
      for (const i of all64)
        for (const j of all64) {
          const { variance: once, same } = weights()[t][i][j];
          const got = tile.memory.variance.view[64 * i + j];
          total++;
          if (once === 0) {
            near(got, 0);
            continue;
          }
          // A weight that is nowhere near the row's largest is counted alone; places may be shared.
          atMost(once * same * (1 - 1e-6) - 1e-30, got);
          if (got > once * same * (1 + 1e-6) + 1e-30) others++;
        }
    expect(others / total).toBeLessThan(0.05);
  });

  it('weigh: what a row adds up to', () => {
    for (const [t, tile] of tiles.entries())
      for (const i of all64) {
        const row = weights()[t][i];
        const sum = (of: (weight: (typeof row)[number], j: number) => number) =>
          row.reduce((total, weight, j) => total + of(weight, j), 0);
        const got = tile.memory.sums.view.subarray(sumsPerRow * i, sumsPerRow * (i + 1));
        near(
          got[0],
          sum(({ weight }) => weight),
        );
        near(
          got[1],
          sum(({ weight }, j) => (tile.isPolynomial[j] ? weight : 0)),
        );
        near(
          got[2],
          sum(({ weight, distance }) => weight * distance),
        );
        near(
          got[3],
          sum(({ weight, distance }) => weight * distance ** 2),
        );
        const variance = sum(({ ofExponential, same }) => same * ofExponential);
        expect(got[4]).toBeGreaterThanOrEqual(variance * (1 - 1e-11));
        near(
          got[5],
          sum(({ bias }) => bias),
        );
        near(
          got[6],
          sum(({ weight, wrong }) => weight * wrong),
        );
        near(
          got[7],
          sum(({ weight, wrong }) => weight * wrong ** 2),
        );
        near(
          got[8],
          sum(({ weight }) => weight * weight),
        );
        expect(got[9]).toBeGreaterThanOrEqual(
          sum(({ weight, same }) => same * weight * weight) * (1 - 1e-11),
        );
        // No score error is smaller than e^t − 1 says.
        expect(got[6]).toBeGreaterThanOrEqual(
          sum(({ weight, natural }) => weight * Math.expm1(natural)) * (1 - 1e-11),
        );
      }
  });

  /** Sums of a tile with its values into cleared running sums, by `moments` or by `narrowMoments`; and what is wrong with them at most. */
  const summed = (tile: Tile, largest: number | null) => {
    const { memory } = tile;
    for (const of of ['moved', 'predicted', 'spread'] as const) memory[of].view.fill(3);
    for (const of of ['tileSum', 'tileSquares'] as const) memory[of].view.fill(NaN);
    if (largest === null) memory.kernels.moments(memory.tile, 64);
    else memory.kernels.narrowMoments(memory.tile, 64, largest);
  };

  it.each([
    ['moments', 'fp64', 1e-13],
    ['narrowMoments', 'fp32', 2 ** -17],
  ] as const)(
    '%s: sums over keys in %s of weights, roundings and variances with V',
    (loop, _, off) => {
      const [tile] = tiles;
      const { memory } = tile;
      const { vStride } = memory;
      // Magnitudes within a factor of 2^30, far from 1.
      const values = tile.values.map(
        (v) => Math.sign(v) * Math.max(Math.abs(v), 2 ** -20) * 2 ** 90,
      );
      memory.values.view.set(loop === 'moments' ? tile.values : values);
      const v = memory.values.view.slice();
      // Rows without a known rounding are summed by a loop of their own, which leaves nothing behind.
      memory.known.view.fill(0, 0, 64 * 8);
      expect(memory.known.view.some((x) => x !== 0)).toBe(true);
      const largest = v.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
      summed(tile, loop === 'moments' ? null : largest);
      memory.values.view.set(tile.values);
      for (const i of all64) {
        const row = 64 * i;
        const keys = all64.map((j) => ({
          ...weights()[0][i][j],
          weight: memory.scores.view[row + j],
          rounding: memory.rounding.view[row + j],
          known: memory.known.view[row + j],
          variance: memory.variance.view[row + j],
        }));
        for (let c = 0; c < dim; c++) {
          const at = i * vStride + c;
          const column = all64.map((k) => v[k * vStride + c]);
          const wanted = columnMoments(keys, column);
          const sizes = columnMoments(keys, column.map(Math.abs));
          atMost(Math.abs(memory.tileSum.view[at] - wanted.sum), off * sizes.sum);
          near(memory.tileSquares.view[at], wanted.squares);
          near(memory.moved.view[at] - 3, wanted.moved, 2 * off + 2 ** -50 * (3 / wanted.moved));
          const wrong = Math.abs(memory.predicted.view[at] - 3 - wanted.predicted);
          atMost(wrong, off * wanted.moved + 2 ** -50);
          near(memory.spread.view[at] - 3, wanted.spread, 2 * off + 2 ** -50 * (3 / wanted.spread));
        }
      }
    },
  );

  it('addUnknown: what moments and addTile add where no rounding is known', () => {
    const { memory, values } = randomTile(name, 9);
    const { kernels, vStride } = memory;
    const view = (name: 'squares' | 'spread' | 'moved') => memory[name].view;
    const drawn = randomValues(5);
    // A row that sees all keys, one that sees none, and others that see some.
    memory.rounding.view.fill(2 ** -20);
    for (const j of all64) {
      memory.rounding.view[64 + j] = 0;
      for (let i = 2; i < 64; i++) if (drawn.sign() > 0) memory.rounding.view[64 * i + j] = 0;
    }
    memory.known.view.fill(0);
    for (const i of all64) {
      memory.least.view[i] = 2 ** -drawn.integer(1, 20);
      memory.gain.view[i] = Math.abs(drawn.normal());
    }
    memory.spread.view.fill(0);
    kernels.moments(memory.tile, 64);
    const [squares, spread] = [memory.tileSquares.view.slice(), memory.spread.view.slice()];
    for (const name of ['squares', 'spread', 'moved'] as const) view(name).fill(3);
    kernels.addUnknown(memory.tile, 64);
    for (const i of all64)
      for (let c = 0; c < dim; c++) {
        const at = i * vStride + c;
        const seen = all64.filter((j) => memory.rounding.view[64 * i + j] > 0);
        const sizes = seen.reduce((sum, j) => sum + Math.abs(values[j * vStride + c]), 0);
        near(view('squares')[at], 3 + squares[at]);
        near(view('spread')[at], 3 + spread[at]);
        near(view('moved')[at], 3 + memory.least.view[i] * memory.gain.view[i] * sizes);
      }
  });
});

/** Runs `addTile` on a tile of one number each. */
function addOnce(memory: BoundMemory, numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers))
    (memory[name as 'sum'] as { readonly view: Float64Array }).view.fill(value);
  memory.kernels.addTile(memory.tile, tileRows);
}

describe('the inner loop over tiles', () => {
  it('adds to the running sums, and bounds what the accumulator may lose', () => {
    const memory = createBoundMemory(4, dim, 64);
    addOnce(memory, {
      tileSum: 0.25,
      tileSquares: 0.5,
      sum: -3,
      squares: 7,
      magnitude: 5,
      accumulated: 10,
      rescaled: 20,
      mass: 0.125,
      slack: 0.5,
      perTile: 0.01,
      floor: 0.001,
      rescale: 0.1,
    });
    const terms = { mass: 0.125, slack: 0.5, perTile: 0.01, floor: 0.001, rescale: 0.1 };
    const before = 3 + 0.5 * 5;
    const losses = accumulatorLoss(terms, -3, 5, 0.5);
    near(losses.accumulated, 0.01 * (before + Math.sqrt(0.125 * 0.5)) + 0.001);
    near(losses.rescaled, 0.1 * before);
    const wanted = {
      sum: -2.75,
      squares: 7.5,
      accumulated: 10 + losses.accumulated,
      rescaled: 20 + losses.rescaled,
    };
    for (const [name, value] of Object.entries(wanted))
      for (const got of memory[name as 'sum'].view) near(got, value);
  });
});

describe('the chain of sums', () => {
  it('adds up products, and the magnitudes of its partial sums', () => {
    const inner = 11;
    const memory = createBoundMemory(inner, 4, 64);
    const { normal } = randomValues(9);
    for (const block of [memory.queries, memory.keyPanels])
      block.view.forEach((_, i) => (block.view[i] = normal()));
    for (const step of [1, 4, 16]) {
      memory.kernels.chainProduct(
        memory.queries.address,
        memory.keyPanels.address,
        memory.scores.address,
        memory.scoreError.address,
        64,
        inner,
        step,
      );
      for (const i of all64)
        for (const j of all64) {
          const q = memory.queries.view.subarray(i * inner, (i + 1) * inner);
          const k = Array.from(
            q,
            (_, t) => memory.keyPanels.view[4 * ((j >> 2) * inner + t) + (j & 3)],
          );
          const { sum, partials } = chainedDot(q, k, step);
          atMost(Math.abs(memory.scores.view[64 * i + j] - sum), 1e-13);
          atMost(Math.abs(memory.scoreError.view[64 * i + j] - partials), 1e-12);
        }
    }
  });
});

describe('the errors of scores, and the scan', () => {
  it('are those of partial sums and of products, bit for bit', () => {
    const memory = createBoundMemory(4, 4, 64);
    const { uniform } = randomValues(10);
    for (const block of [memory.scoreError, memory.variance])
      block.view.forEach((_, i) => (block.view[i] = uniform()));
    const partials = memory.scoreError.view.slice();
    const law = { perPartial: 2 ** -20, perUnit: 3 * 2 ** -22 };
    memory.kernels.scoreErrors(
      memory.scoreError.address,
      memory.variance.address,
      64 * 64,
      law.perPartial,
      law.perUnit,
    );
    const wanted = partials.map((x, i) => chainError(law, x, memory.variance.view[i]));
    expect(memory.scoreError.view).toEqual(wanted);
  });

  it('finds the largest exponent and the largest error that a row sees, bit for bit', () => {
    const { memory, scores, scoreErrors, rows } = randomTile('bf16', 4);
    memory.scores.view.set(scores);
    memory.errors.view.fill(0);
    memory.largest.view.fill(-Infinity);
    rows.forEach(({ low, high }, i) => {
      memory.low.view[i] = low;
      memory.high.view[i] = high;
    });
    memory.kernels.scanScores(memory.tile, 64, factor, binsPerOctave);
    rows.forEach(({ low, high }, i) => {
      const keys = all64.map((j) => ({
        score: low <= j && j < high ? scores[64 * i + j] : NaN,
        scoreError: scoreErrors[64 * i + j],
        exponential: 0,
      }));
      const { largest, error } = scanKeys(keys, factor);
      expect(memory.maxima.view[i]).toBe(largest);
      expect(memory.errors.view[i]).toBe(error);
    });
  });
});
