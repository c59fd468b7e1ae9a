import { describe, expect, it } from 'vitest';
import { readOperand, dotError, isExactDot } from '../../../oracles/attention/operand.js';
import { createTileEngine, loadTile } from '../../../oracles/attention/tile-engine.js';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import { float64FromRational, scaledIntegerOf } from '../../../src/arith/index.js';
import {
  encodeFromFloat64,
  formats,
  tensorScales,
  type FormatName,
} from '../../../src/formats/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** The sequential fp64 dot product, as the kernel does it, and its error against the exact one. */
function dot(query: Float64Array, key: Float64Array): { value: number; error: number } {
  const value = query.reduce((sum, x, t) => sum + x * key[t], 0);
  const products = Array.from(query, (x, t) => {
    const [a, b] = [scaledIntegerOf(x), scaledIntegerOf(key[t])];
    return { integer: a.integer * b.integer, exponent: a.exponent + b.exponent };
  });
  const rounded = scaledIntegerOf(value);
  const unit = Math.min(0, rounded.exponent, ...products.map(({ exponent }) => exponent));
  const exact = products.reduce(
    (sum, { integer, exponent }) => sum + (integer << BigInt(exponent - unit)),
    0n,
  );
  const difference = (rounded.integer << BigInt(rounded.exponent - unit)) - exact;
  return { value, error: Math.abs(float64FromRational(difference, 1n << BigInt(-unit))) };
}

/** Operands of one row each, all elements times a factor. */
function operands(format: FormatName, q: readonly number[], k: readonly number[], factor = 1) {
  const read = (values: readonly number[]) => {
    const shape = [1, 1, 1, values.length];
    const factors = {
      name: 'descale',
      format: 'fp32',
      values: Float64Array.of(factor),
      shape: [1, 1, 1, 1],
      blocks: shape,
    } as const;
    const data = encodeFromFloat64(formats[format], Float64Array.from(values), {
      overflow: 'saturate',
    });
    const scales = factor === 1 ? {} : { scales: tensorScales({ format, shape }, [factors]) };
    return readOperand({ format, shape, data, ...scales }, 0, 1, values.length);
  };
  return { query: read(q), keys: read(k) };
}

/** |error| / bound of one pair, having checked that it is at most 1 and exact dots are exact. */
function boundUse(
  format: FormatName,
  q: readonly number[],
  k: readonly number[],
  factor?: number,
): number {
  const { query, keys } = operands(format, q, k, factor);
  const { error } = dot(query.tile(0), keys.tile(0));
  const bound = dotError(query, 0, keys, 0);
  if (isExactDot(query, 0, keys, 0) ? error !== 0 || bound !== 0 : !(error <= bound))
    throw new Error(
      `${format} dot of [${query.tile(0).join()}] and [${keys.tile(0).join()}] errs by ${error}, bound ${bound}`,
    );
  return error === 0 ? 0 : error / bound;
}

type Style = (d: number, span: number, random: RandomValues) => [number[], number[]];

const fraction = (random: RandomValues) => 1 + random.uniform();
const short = (random: RandomValues) => 1 + random.integer(0, 7) / 8;
const times = (d: number, value: (t: number) => number) =>
  Array.from({ length: d }, (_, t) => value(t));

/** Ways to provoke roundings in the partial sums. `span` is the range of exponents. */
const styles: Readonly<Record<string, Style>> = {
  'exponents all over the place': (d, span, random) => {
    const value = () => random.sign() * fraction(random) * 2 ** random.integer(-span, span);
    return [times(d, value), times(d, value)];
  },
  'one fine term under a ladder of doublings': (d, span, random) => {
    const rungs = times(d, (t) => 2 ** Math.max(-span, t - d + span));
    const fine = random.integer(0, d - 1);
    return [
      rungs.map((x) => x * short(random)),
      rungs.map((_, t) => (t === fine ? fraction(random) * 2 ** -random.integer(0, span) : 1)),
    ];
  },
  'partial sums that grow and shrink': (d, span, random) => {
    const sizes = times(d, () => fraction(random) * 2 ** random.integer(0, span));
    return [
      sizes.map((x, t) => (t % 2 === 0 ? x : -x)),
      sizes.map(() =>
        random.integer(0, d) === 0 ? fraction(random) * 2 ** -random.integer(0, span) : 1,
      ),
    ];
  },
  'near cancellation, then growth': (d, span, random) => {
    const top = random.integer(0, span);
    const q = times(
      d,
      (t) => (t % 2 === 0 ? 1 : -1) * short(random) * 2 ** Math.max(top - (t >> 1), -span),
    );
    const k = times(d, (t) => (t % 4 < 2 ? 1 : fraction(random)));
    return [q, k];
  },
  'parallel vectors': (d, span, random) => {
    const value = times(d, (t) => fraction(random) * 2 ** Math.floor((t * span) / d / 2));
    return [value, value];
  },
  'few bits but for one term in four': (d, span, random) => [
    times(
      d,
      () =>
        random.sign() *
        (random.integer(0, 3) === 0
          ? fraction(random) * 2 ** -random.integer(0, span)
          : short(random) * 2 ** random.integer(0, 8)),
    ),
    times(d, () => short(random)),
  ],
};

const spans: Readonly<Record<FormatName, number>> = {
  fp64: 200,
  fp32: 60,
  tf32: 60,
  bf16: 60,
  fp16: 12,
  e4m3: 6,
  e5m2: 12,
  e2m1: 2,
};

describe('the bound of fp64 dot products', () => {
  const names = Object.keys(spans) as FormatName[];

  inTurn.each(Object.keys(styles))('holds for %s', (style) => {
    const random = randomValues(testSeed);
    for (let run = 0; run < scaled(2000); run++) {
      const format = names[random.integer(0, names.length - 1)];
      const d = random.integer(1, random.integer(0, 3) === 0 ? 64 : 12);
      const span = random.integer(1, spans[format]);
      boundUse(format, ...styles[style](d, span, random));
    }
  });

  it.each(Object.keys(styles))('holds for %s, of elements with a factor', (style) => {
    const random = randomValues(testSeed);
    let inexact = 0;
    for (let run = 0; run < scaled(300); run++) {
      const format = (['e4m3', 'bf16', 'fp16', 'fp32'] as const)[random.integer(0, 3)];
      const d = random.integer(1, 12);
      const span = random.integer(1, spans[format]);
      const factor = Math.fround(fraction(random));
      if (boundUse(format, ...styles[style](d, span, random), factor) > 0) inexact++;
    }
    // Products of 29 to 96 bits: most sums are rounded.
    expect(inexact).toBeGreaterThan(0);
  });

  it('holds, and is nearly reached, where a search drives the error up', () => {
    const d = 5;
    let highest = 0;
    for (let climb = 0; climb < scaled(4); climb++) {
      // A climb can get stuck on a low hill; the first, of a fixed seed, does not.
      const random = randomValues(climb === 0 ? 2_000_006 : testSeed + climb);
      const fresh = () => random.sign() * fraction(random) * 2 ** random.integer(-20, 20);
      let best: [number[], number[]] = [times(d, fresh), times(d, fresh)];
      let use = boundUse('fp64', ...best);
      for (let step = 0; step < 600; step++) {
        const next: [number[], number[]] = [[...best[0]], [...best[1]]];
        const side = next[random.integer(0, 1)];
        const at = random.integer(0, d - 1);
        const moves = [
          fresh(),
          -side[at],
          side[at] * 2 ** random.integer(-3, 3),
          side[at] * (1 + random.sign() * 2 ** -random.integer(1, 52)),
          2 ** Math.round(Math.log2(Math.abs(side[at]))),
        ];
        const move = moves[random.integer(0, moves.length - 1)];
        side[at] = Math.abs(Math.log2(Math.abs(move))) < 100 ? move : 1;
        const reached = boundUse('fp64', ...next);
        if (reached >= use) [use, best] = [reached, next];
      }
      highest = Math.max(highest, use);
    }
    expect(highest).toBeGreaterThan(0.4);
  });

  it('is half reached by one fine term that is rounded in every other binade', () => {
    // Products 2^6, 2^8, … 2^40 are coarse enough to add up exactly; only the first term is fine.
    const random = randomValues(testSeed);
    const rungs = times(18, (t) => 2 ** (t + 3));
    let largest = 0;
    for (let run = 0; run < 500; run++) {
      const use = boundUse(
        'bf16',
        [fraction(random) * 2 ** -11, ...rungs],
        [fraction(random), ...rungs],
      );
      largest = Math.max(largest, use);
    }
    expect(largest).toBeGreaterThan(0.4);
  });

  it('is 0 for short formats of moderate exponents, whose products add up exactly', () => {
    const random = randomValues(testSeed);
    for (const format of ['bf16', 'fp16', 'e4m3', 'e5m2'] as const) {
      const value = () => random.sign() * fraction(random) * 2 ** random.integer(-2, 1);
      const { query, keys } = operands(format, times(256, value), times(256, value));
      expect(dotError(query, 0, keys, 0)).toBe(0);
      expect(dot(query.tile(0), keys.tile(0)).error).toBe(0);
    }
  });

  it('counts zeros as exact and knows the ends of the range', () => {
    expect(boundUse('fp64', [0, 0], [1e300, 1])).toBe(0);
    boundUse('fp64', [2 ** -1074, 1], [1, 2 ** -1074]);
    boundUse('fp64', [2 ** -600, 2 ** -500], [2 ** -500, 2 ** -560]);
    boundUse('fp64', [2 ** -1074, 3 * 2 ** -1074], [0.5, 0.25]);
    const overflow = operands('fp64', [1e300, 1], [1e300, 1]);
    expect(dotError(overflow.query, 0, overflow.keys, 0)).toBe(Infinity);
    const exact = operands('fp32', [2 ** 120], [2 ** 120]);
    expect(dotError(exact.query, 0, exact.keys, 0)).toBe(0);
  });
});

it('the WebAssembly product is the sequential dot product, bit by bit', () => {
  const random = randomValues(testSeed);
  for (const d of [1, 2, 7, 64]) {
    const engine = createTileEngine(d, 4);
    const fill = () =>
      new Float64Array(64 * d).map(
        () => random.sign() * fraction(random) * 2 ** random.integer(-30, 30),
      );
    const [q, k] = [fill(), fill()];
    loadTile(engine.queries.view, q, d, d);
    const tensor = { format: 'fp64', shape: [64, d], data: k } as const;
    engine.keysTransposed.view.set(readOperand(tensor, 0, 64, d).columns(0));
    const { queries, keysTransposed, scores, kernels } = engine;
    kernels.product(queries.address, keysTransposed.address, scores.address, 64, d, 64);
    for (let i = 0; i < 64; i++)
      for (let j = 0; j < 64; j++) {
        let sum = 0;
        for (let t = 0; t < d; t++) sum += q[i * d + t] * k[j * d + t];
        expect(scores.view[i * 64 + j]).toBe(sum);
      }
  }
});
