import type { HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';

/** Fewest damaged rows of one kv head that single out a key: below it anything fits. */
const fewestRows = 6;

/** The lead, in units of its variance, with which a key must explain more of the error than any other. */
const margin = 100;

/** A key, and the error of its V, that fits a kv head's rows best. */
interface WrongValue {
  readonly key: number;
  readonly difference: Float64Array;
}

function weightsOf({ reader }: HypothesisContext, row: SampleRow): Float64Array {
  const scores = reader.scores(row.row);
  return scores.map((s) => (s === -Infinity ? 0 : Math.exp(s - row.denominator)));
}

/**
 * Rows err by w_ij·δ when V of key j is off by δ. Finds the key whose weights explain most of the
 * rows' error, each row in units of its rounding, with δ by least squares.
 */
function fitWrongValue(context: HypothesisContext, rows: readonly SampleRow[]): WrongValue | null {
  const { keys, vDim } = context.shape;
  const cross = new Float64Array(keys * vDim);
  const squares = new Float64Array(keys);
  for (const row of rows) {
    const weights = weightsOf(context, row);
    const trust = 1 / row.correct.noise;
    for (let j = 0; j < keys; j++) {
      const w = weights[j];
      if (w === 0) continue;
      squares[j] += trust * w * w;
      for (let c = 0; c < vDim; c++)
        cross[j * vDim + c] += trust * w * (row.observed[c] - row.correct.out[c]);
    }
  }
  let best = -1;
  let most = 0;
  let second = 0;
  for (let j = 0; j < keys; j++) {
    let energy = 0;
    for (let c = 0; c < vDim; c++) energy += cross[j * vDim + c] ** 2;
    const explained = squares[j] === 0 ? 0 : energy / squares[j];
    if (explained > most) {
      second = most;
      most = explained;
      best = j;
    } else if (explained > second) second = explained;
  }
  if (best < 0 || most - second < margin) return null;
  const difference = cross.slice(best * vDim, (best + 1) * vDim).map((x) => x / squares[best]);
  return { key: best, difference };
}

/** One key's row of V wrong, whatever it is instead. */
export const singleKeyHypotheses: HypothesisFamily = function* (context) {
  const { sample, shape, reader } = context;
  const damaged = sample.filter((row) => row.damaged);
  for (const kv of new Set(damaged.map((row) => row.kv))) {
    const rows = damaged.filter((row) => row.kv === kv);
    if (rows.length < fewestRows) continue;
    const fit = fitWrongValue(context, rows);
    if (fit === null) continue;
    const { key, difference } = fit;
    const moved = [...difference].flatMap((x, c) =>
      Math.abs(x) > 2 ** -6 * Math.abs(reader.values(kv)[key * shape.vDim + c]) ? [c] : [],
    );
    const columns = moved.length === 1 ? `, column ${moved[0]},` : '';
    const head = shape.kvHeads * shape.batch > 1 ? ` of kv head ${kv % shape.kvHeads}` : '';
    yield {
      id: 'value-of-one-key',
      technique: null,
      statement: `V of key ${key}${head}${columns} is wrong`,
      local: true,
      fitted: true,
      predict: (row) => {
        if (row.kv !== kv) return row.damaged ? null : row.correct;
        const w = weightsOf(context, row)[key];
        const out = row.correct.out.map((x, c) => x + w * difference[c]);
        return { ...row.correct, out };
      },
    };
  }
};
