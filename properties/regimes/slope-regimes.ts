import { addToRow, randomDirection } from './direction.js';
import type { Regime } from './regime.js';
import { someRow } from './score-rows.js';
import { drawnValues, headRows, normalValues } from './tensor-values.js';

/** By how much the sink's score exceeds the others', by how much a slope climbs; nats. */
const sinkScore = 7;
const climbScore = 24;
/** What of it a row must show to be one of the regime, even after shrinking; nats. */
const leastSink = 3;
const leastClimb = 6;

/** Scores that climb along the keys by the slope's share of `climbScore`, with a little noise. */
function drawSlope(slope: (share: number) => number): Regime['draw'] {
  return ({ sizes, random }) => {
    const { qkDim } = sizes;
    const noise = () => random.normal() / 4;
    const values = drawnValues(sizes, noise, noise, random.normal);
    const strength = Math.sqrt(climbScore * Math.sqrt(qkDim));
    for (const { firstQuery, queries, firstKey, keys } of headRows(sizes)) {
      const along = randomDirection(qkDim, random);
      for (let row = 0; row < queries; row++) addToRow(values.q, firstQuery + row, along, strength);
      for (let key = 0; key < keys; key++)
        addToRow(values.k, firstKey + key, along, strength * slope(key / Math.max(keys - 1, 1)));
    }
    return values;
  };
}

/** Whether in some row the last key's score exceeds the first one's, or the reverse for sign −1. */
function climbs(sign: 1 | -1): Regime['holds'] {
  return (plain) =>
    someRow(plain, (raw, scale) => sign * scale * (raw.at(-1)! - raw[0]) >= leastClimb);
}

/** Regimes of where along the keys the large scores are. */
export const slopeRegimes = {
  sink: {
    description: 'normal scores but for the first key, visited last, which is 7 above',
    provokes: 'a running maximum that rises in the last block visited, or never but in the first',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const values = normalValues(sizes, random);
      const strength = Math.sqrt(sinkScore * Math.sqrt(qkDim));
      for (const { firstQuery, queries, firstKey } of headRows(sizes)) {
        const along = randomDirection(qkDim, random);
        for (let row = 0; row < queries; row++)
          addToRow(values.q, firstQuery + row, along, strength);
        values.k.fill(0, firstKey * qkDim, (firstKey + 1) * qkDim);
        addToRow(values.k, firstKey, along, strength);
      }
      return values;
    },
    holds: (plain) =>
      plain.sizes.keys >= 2 &&
      someRow(plain, (raw, scale) => {
        const others = raw.subarray(1).reduce((sum, x) => sum + x, 0) / (raw.length - 1);
        return scale * (raw[0] - others) >= leastSink;
      }),
  },
  ascending: {
    description: 'scores climb by 24 along the keys: the first block visited has the maximum',
    provokes: 'rescaling in every block visited from the first; weights that vanish in the others',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: drawSlope((share) => share),
    holds: climbs(1),
  },
  descending: {
    description: 'scores fall by 24 along the keys: the maximum grows with every block visited',
    provokes: 'rescaling in every block visited from the last, and a maximum that lags',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 2 } }),
    scales: ['default'],
    draw: drawSlope((share) => 1 - share),
    holds: climbs(-1),
  },
} satisfies Record<string, Regime>;
