import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import type { Fa4Configuration } from '../../../kernels/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { fromEnvironment, scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { encode } from '../damage.js';
import { judgedFa4 } from './judged-kernels.js';
import { boundViolations } from './violations.js';

const inTurn = turns(import.meta.url);

const count = fromEnvironment('WRONG_MAXIMA', scaled(50));

interface Posed {
  readonly problem: Problem;
  readonly configuration: Partial<Fa4Configuration>;
}

/**
 * A problem whose scores are up to 2^40, with a few keys that are nearly one, so that FlashAttention-4 has scores and
 * maxima that are off by octaves: the tensor cores truncate, and m·c is rounded.
 */
function withWrongMaxima(format: FormatName, seed: number): Posed {
  const random = randomValues(seed);
  const dim = random.integer(1, 16);
  // Within one block of keys, or in two and three.
  const keys = random.uniform() < 0.3 ? random.integer(129, 300) : random.integer(1, 4);
  const largest = random.integer(format === 'e4m3' ? 5 : 8, format === 'e4m3' ? 8 : 15);
  const element = () => {
    if (random.uniform() < 0.5) return 0;
    const sign = random.uniform() < 0.5 ? -1 : 1;
    return sign * (1 + random.integer(0, 3) / 4) * 2 ** random.integer(0, largest);
  };
  const near = Array.from({ length: dim }, element);
  const tensor = (rows: number, columns: number, value: (column: number) => number) => {
    const values = Float64Array.from({ length: rows * columns }, (_, i) => value(i % columns));
    return encode(values, format, [1, rows, columns]);
  };
  const problem: Problem = {
    q: tensor(2, dim, element),
    k: tensor(keys, dim, (column) => (random.uniform() < 0.8 ? near[column] : element())),
    v: tensor(keys, 2, () => random.integer(-8, 8) / 4),
    scale: format === 'e4m3' ? 2 ** random.integer(0, 16) : 1 / Math.sqrt(dim),
    causal: false,
    window: null,
    softcap: null,
  };
  const choose = <T>(values: readonly T[]) => values[random.integer(0, values.length - 1)];
  const chosen = {
    architecture: choose(['sm_90', 'sm_100'] as const),
    maxOffset: choose([0, 8, -3]),
    rescaleThreshold: choose([0, 2, 8]),
  };
  return { problem, configuration: random.uniform() < 0.5 ? {} : chosen };
}

describe.each(['e5m2', 'e4m3', 'fp16'] as const)('%s scores that are off by octaves', (format) => {
  inTurn(
    "keep FlashAttention-4's forward within its bounds, technique by technique and in all",
    () => {
      let checked = 0;
      for (let seed = testSeed; seed < testSeed + count; seed++) {
        const { problem, configuration } = withWrongMaxima(format, seed);
        const found = boundViolations(problem, judgedFa4(problem, configuration));
        const again = `TEST_SEED=${seed} WRONG_MAXIMA=1, as ${JSON.stringify(configuration)}`;
        expect(found.violations, again).toEqual([]);
        checked += found.checked;
      }
      expect(checked).toBeGreaterThan(10 * count);
    },
  );
});

describe('e5m2 weights that are all off by octaves, m·c being rounded', () => {
  inTurn('saturate or underflow within the bounds', () => {
    for (let seed = testSeed; seed < testSeed + count; seed++) {
      const random = randomValues(seed);
      const significand = () => 1 + random.integer(1, 3) / 4;
      const one = (value: number) => encode(Float64Array.of(value), 'e5m2', [1, 1, 1]);
      // The product of two numbers of three bits is exact, its product with the scale is not.
      const problem: Problem = {
        q: one(significand() * 2 ** random.integer(6, 12)),
        k: one(significand() * 2 ** 15),
        v: one(significand()),
        scale: 1 / 2 + random.uniform(),
        causal: false,
        window: null,
        softcap: null,
      };
      const again = `TEST_SEED=${seed} WRONG_MAXIMA=1`;
      expect(boundViolations(problem, judgedFa4(problem)).violations, again).toEqual([]);
    }
  });
});

describe('a row sum beyond the range of fp32', () => {
  /** 128 keys of score 0 and as many of one so many octaves above, which an infinite threshold never rescales for. */
  const above = (octaves: number): Problem => {
    const column = (value: (key: number) => number) =>
      encode(
        Float64Array.from({ length: 256 }, (_, key) => value(key)),
        'bf16',
        [1, 256, 1],
      );
    return {
      q: encode(Float64Array.of(1), 'bf16', [1, 1, 1]),
      k: column((key) => (key < 128 ? octaves : 0)),
      v: column(() => 2 ** -14),
      scale: Math.LN2,
      causal: false,
      window: null,
      softcap: null,
    };
  };
  const infinite = { rescaleThreshold: Infinity };

  it.each([116, 119, 122, 126])('is within its bounds, or has none: %d octaves', (octaves) => {
    const problem = above(octaves);
    expect(boundViolations(problem, judgedFa4(problem, infinite)).violations).toEqual([]);
  });

  it('has bounds as long as it is within the range', () => {
    const checkedOf = (octaves: number) =>
      boundViolations(above(octaves), judgedFa4(above(octaves), infinite)).checked;
    expect(checkedOf(116)).toBeGreaterThan(checkedOf(126));
  });
});
