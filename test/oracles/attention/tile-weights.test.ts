import { describe, expect, it } from 'vitest';
import { log2eWords } from '../../../oracles/attention/logarithm-words.js';
import { scoreConstants } from '../../../oracles/attention/scores.js';
import { createTileEngine } from '../../../oracles/attention/tile-engine.js';
import { weightRoundoff } from '../../../oracles/attention/tile-level.js';
import { doubleDoubleExp2 } from '../../../oracles/exp2.js';
import { createExp2 } from '../../../oracles/fixed-point.js';
import { randomValues } from '../../../properties/problems/values.js';
import { doubleDouble, float64FromRational, scaledIntegerOf } from '../../../src/arith/index.js';
import { loadMpfr } from '../mpfr.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { openRows, weighTile } from './weigh-tile.js';

const mpfr = await loadMpfr();
const engine = createTileEngine(4, 4);
const { kernels, scores, low, high, reference, tileTotal } = engine;
const tileSize = 64 * 64;

/** Weights of a whole tile of scores for the constant cHigh + cLow, from a fresh reference. */
function weightsOf(values: Float64Array, cHigh = 1, cLow = 0): Float64Array {
  scores.view.set(values);
  openRows(engine);
  weighTile(engine, { high: cHigh, low: cLow });
  return scores.view;
}

/** Arguments of 2^f in [−0.5, 0.5]: everywhere, next to ±0.5, next to 0, and of few bits. */
function fractions(count: number, seed: number): Float64Array {
  const random = randomValues(seed);
  const fine = () => random.uniform() + random.uniform() * 2 ** -32;
  const kinds = [
    () => fine() - 0.5,
    () => fine() - 0.5,
    () => random.sign() * (0.5 - fine() * 2 ** -random.integer(2, 53)),
    () => random.sign() * fine() * 2 ** -random.integer(1, 70),
    () => random.integer(-(2 ** 11), 2 ** 11) / 2 ** 12,
  ];
  return new Float64Array(count).map(() => {
    const f = kinds[random.integer(0, kinds.length - 1)]();
    return Math.max(-0.5, Math.min(0.5, f));
  });
}

describe('weights of the fp64 level', () => {
  it('2^f is within its bound for many f, against double-double', () => {
    let worst = 0;
    for (let tile = 0; tile < scaled(20); tile++) {
      // The first tile, of a fixed seed, comes near the bound.
      const f = fractions(tileSize, tile === 0 ? 1 : testSeed + tile);
      weightsOf(f).forEach((weight, i) => {
        const { fraction, exponent } = doubleDoubleExp2(doubleDouble(f[i]));
        const power = 2 ** exponent;
        const error = Math.abs(weight - fraction.high * power - fraction.low * power);
        worst = Math.max(worst, error / (fraction.high * power));
      });
    }
    expect(worst).toBeLessThan(weightRoundoff);
    // The bound is of the right size.
    expect(worst).toBeGreaterThan(weightRoundoff / 4);
  });

  it('2^f is within its bound, against fixed point and against MPFR', () => {
    const bits = 160;
    const exp2 = createExp2(bits);
    const f = fractions(tileSize, testSeed);
    const weights = weightsOf(f).slice();
    for (let i = 0; i < tileSize; i++) {
      const { integer, exponent } = scaledIntegerOf(f[i]);
      const fixed =
        exponent + bits >= 0
          ? integer << BigInt(exponent + bits)
          : integer >> BigInt(-exponent - bits);
      const exact = exp2(fixed);
      const weight = scaledIntegerOf(weights[i]);
      const difference = (weight.integer << BigInt(weight.exponent + bits)) - exact;
      expect(Math.abs(float64FromRational(difference, exact))).toBeLessThan(weightRoundoff);
    }
    mpfr.withPrecision(200, (arena) => {
      for (let i = 0; i < tileSize; i += 8) {
        const ratio = arena.divide(arena.of(weights[i]), arena.exp2(arena.of(f[i])));
        expect(arena.distance(ratio, 1)).toBeLessThan(weightRoundoff);
      }
    });
  });

  it('2^(s·c − reference) is within the bound for double-double constants and large scores', () => {
    const random = randomValues(testSeed);
    let worst = 0;
    let compared = 0;
    for (let tile = 0; tile < scaled(60); tile++) {
      const cHigh = random.sign() * (0.5 + random.uniform()) * 2 ** random.integer(-30, 30);
      const cLow = cHigh * 2 ** -53 * (random.uniform() - 0.5);
      // Exponents up to 2^40, most of a row within 2^11 of its largest.
      const centre = random.sign() * 2 ** random.integer(-5, 40) * (1 - 2 ** -12);
      const spread = Math.min(Math.abs(centre) * 2 ** -12, 900) + 2;
      const s = new Float64Array(tileSize).map(
        () => (centre + (random.uniform() - 0.5 + random.uniform() * 2 ** -33) * spread) / cHigh,
      );
      const weights = weightsOf(s, cHigh, cLow).slice();
      mpfr.withPrecision(240, (arena) => {
        const c = arena.add(arena.of(cHigh), arena.of(cLow));
        for (let i = 0; i < tileSize; i += 37) {
          const exponent = arena.subtract(
            arena.multiply(arena.of(s[i]), c),
            arena.of(reference.view[i >> 6]),
          );
          if (weights[i] === 0) {
            expect(arena.toNumber(exponent)).toBeLessThan(-999);
            continue;
          }
          compared++;
          const ratio = arena.divide(arena.of(weights[i]), arena.exp2(exponent));
          worst = Math.max(worst, arena.distance(ratio, 1));
        }
      });
    }
    expect(compared).toBeGreaterThan(scaled(2500));
    expect(worst).toBeLessThan(weightRoundoff);
  });

  it('2^(s·c + a·d − reference) is within the bound for large summands that cancel', () => {
    const { addends } = engine;
    const random = randomValues(testSeed);
    const d = log2eWords();
    let worst = 0;
    let compared = 0;
    for (let tile = 0; tile < scaled(60); tile++) {
      const cHigh = random.sign() * (0.5 + random.uniform()) * 2 ** random.integer(-30, 30);
      const cLow = cHigh * 2 ** -53 * (random.uniform() - 0.5);
      // Products up to 2^38, most of their sums within 2^11 of the largest.
      const large = random.sign() * 2 ** random.integer(-5, 38) * (1 - 2 ** -12);
      const fine = () => random.uniform() - 0.5 + random.uniform() * 2 ** -33;
      scores.view.forEach((_, i) => {
        scores.view[i] = (large + 300 * fine()) / cHigh;
        addends.view[i] = (random.integer(0, 9) === 0 ? fine() : fine() * 600 - large) / d.high;
      });
      const [s, a] = [scores.view.slice(), addends.view.slice()];
      openRows(engine);
      weighTile(engine, { high: cHigh, low: cLow }, d);
      mpfr.withPrecision(240, (arena) => {
        const c = arena.add(arena.of(cHigh), arena.of(cLow));
        const log2e = arena.divide(arena.of(1), arena.ln2());
        for (let i = 0; i < tileSize; i += 37) {
          const exponent = arena.subtract(
            arena.add(arena.multiply(arena.of(s[i]), c), arena.multiply(arena.of(a[i]), log2e)),
            arena.of(reference.view[i >> 6]),
          );
          const weight = scores.view[i];
          if (weight === 0) {
            expect(arena.toNumber(exponent)).toBeLessThan(-999);
            continue;
          }
          compared++;
          const ratio = arena.divide(arena.of(weight), arena.exp2(exponent));
          worst = Math.max(worst, arena.distance(ratio, 1));
        }
      });
    }
    expect(compared).toBeGreaterThan(scaled(1000));
    expect(worst).toBeLessThan(weightRoundoff);
    // The bound is of the right size.
    expect(worst).toBeGreaterThan(weightRoundoff / 5);
  });

  it('drops weights below 2^-1000 and keeps those above', () => {
    const values = new Float64Array(tileSize);
    [0, -999, -1000, -1001, -1e9].forEach((x, i) => (values[i] = x));
    expect([...weightsOf(values).subarray(0, 5)]).toEqual([1, 2 ** -999, 2 ** -1000, 0, 0]);
  });

  it('gives masked columns weight 0, whatever their score, and leaves them out of the sum', () => {
    for (const [begin, end] of [
      [0, 64],
      [1, 2],
      [3, 7],
      [62, 64],
      [63, 64],
      [0, 1],
      [5, 5],
      [64, 64],
    ] as const) {
      const values = new Float64Array(tileSize).map((_, i) => {
        const column = i % 64;
        const seen = begin <= column && column < end;
        return seen ? 0 : [NaN, Infinity, -Infinity, 1e300][column % 4];
      });
      weightsOf(values);
      scores.view.set(values);
      low.view.fill(begin);
      high.view.fill(end);
      reference.view.fill(-Infinity);
      weighTile(engine, { high: 1, low: 0 });
      expect(tileTotal.view[17]).toBe(Math.max(end - begin, 0));
      for (let j = 0; j < 64; j++)
        expect(scores.view[17 * 64 + j]).toBe(begin <= j && j < end ? 1 : 0);
    }
  });
});

it('the softcap is within 2^-50 of tanh, and the bound is of the right order', () => {
  const random = randomValues(testSeed);
  let worst = 0;
  for (let tile = 0; tile < scaled(20); tile++) {
    const softcap = (1 + random.uniform()) * 2 ** random.integer(-40, 40);
    const scale = random.sign() * (1 + random.uniform()) * 2 ** random.integer(-40, 40);
    const { capFactorHigh } = scoreConstants({ scale, softcap, addend: null });
    const w = () =>
      random.integer(0, 3) === 0
        ? random.sign() * 2 ** -random.integer(0, 300)
        : random.sign() * random.uniform() * 2 ** random.integer(-4, 9);
    const values = new Float64Array(tileSize).map(() => w() / capFactorHigh);
    scores.view.set(values);
    kernels.capScores(scores.address, tileSize, capFactorHigh);
    mpfr.withPrecision(300, (arena) => {
      const ratio = arena.divide(arena.of(scale), arena.of(softcap));
      for (let i = 0; i < tileSize; i += 19) {
        const exact = arena.tanh(arena.multiply(arena.of(values[i]), ratio));
        worst = Math.max(worst, arena.distance(exact, scores.view[i]));
      }
    });
  }
  expect(worst).toBeLessThan(2 ** -50);
  expect(worst).toBeGreaterThan(2 ** -54);
});
