import { formats } from '../../../src/formats/index.js';
import { fill, headRows, normalValues, rowOf, type RandomValues } from '../values.js';
import { everyRow, maximum, type Regime } from './regime.js';

/** Distances below 0 of the scores of a deep row, in nats, and their upper limit: e^−LSE is infinite in fp32 from 89 on. */
const deep = { least: 128, most: 1024, scores: -96 };

/** Distance of rows of nearly constant values from their common row, relative to its size. */
const nearness = 2 ** -5;

/** Rows of V that are nearly one row; every head has its own. */
function nearlyConstant(
  values: Float64Array,
  rows: ReturnType<typeof headRows>,
  dim: number,
  random: RandomValues,
): Float64Array {
  for (const { firstKey, keys } of rows) {
    const common = fill(dim, () => random.sign() * (1 + random.uniform()));
    for (let key = firstKey; key < firstKey + keys; key++)
      rowOf(values, key, dim).set(
        common.map((x) => x * (1 + nearness * (2 * random.uniform() - 1))),
      );
  }
  return values;
}

/** Regimes that provoke gradients; by default only the laws of gradients are tried in them. */
export const gradientRegimes = {
  'one-deep-query': {
    description: 'one query whose scores are 128 to 1024 nats below zero',
    provokes: 'e^score · e^−LSE in place of e^(score − LSE): 0 · ∞',
    sizes: () => ({ queries: { min: 1, max: 1 }, keys: { min: 1 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const values = normalValues(sizes, random);
      const nats = random.integer(deep.least, deep.most);
      const size = Math.sqrt(nats / Math.sqrt(qkDim));
      for (const { firstQuery, queries, firstKey, keys } of headRows(sizes)) {
        const signs = fill(qkDim, random.sign);
        const near = (x: number) => x * size * (1 + random.uniform() / 64);
        for (let row = 0; row < queries; row++)
          rowOf(values.q, firstQuery + row, qkDim).set(signs.map(near));
        for (let row = 0; row < keys; row++)
          rowOf(values.k, firstKey + row, qkDim).set(signs.map((sign) => near(-sign)));
      }
      return values;
    },
    holds: (plain) =>
      plain.sizes.queries === 1 &&
      everyRow(plain, (raw, scale) => maximum(raw) * scale <= deep.scores),
  },
  'level-values': {
    description: 'rows of V alike but for three parts in a hundred',
    provokes: 'dP − D that cancels: a D of coarse or of other numbers',
    sizes: () => ({ keys: { min: 1 } }),
    draw: ({ sizes, random }) => {
      const values = normalValues(sizes, random);
      return { ...values, v: nearlyConstant(values.v, headRows(sizes), sizes.vDim, random) };
    },
    holds: ({ values, sizes, formats: { v: name } }) =>
      headRows(sizes).every(({ firstKey, keys }) => {
        const allowed = 4 * Math.max(nearness, 2 ** -formats[name].precision);
        for (let c = 0; c < sizes.vDim; c++) {
          let [least, most] = [Infinity, -Infinity];
          for (let key = firstKey; key < firstKey + keys; key++) {
            const x = values.v[key * sizes.vDim + c];
            [least, most] = [Math.min(least, x), Math.max(most, x)];
          }
          // Some more than was drawn, and two ulps where a format has few bits.
          if (most - least > allowed * Math.max(Math.abs(most), Math.abs(least))) return false;
        }
        return true;
      }),
  },
} satisfies Record<string, Regime>;
