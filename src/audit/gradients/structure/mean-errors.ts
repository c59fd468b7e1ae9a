import { attentionOracle, levels } from '../../../../oracles/index.js';
import { decodeTensor, formats, unitRoundoff } from '../../../formats/index.js';
import { problemShape, type Problem } from '../../../problem/index.js';
import { outputRounding } from '../../bounds/index.js';
import type { GradientPremises } from '../bounds/index.js';
import type { JudgedGradientName } from '../gradient-quantities.js';
import type { MeasuredGradients } from '../measure-gradients.js';

/**
 * The effect of errors of the row sums D, and of the LSE, on dK, or of the latter on dV, all keys together. An error ε of a row's D moves every key's
 * dK by −scale·ε·P·q: the keys err together, and no sum over independent rows of dK covers that.
 */
export interface MeanErrors {
  /** [batch, kv heads, qkDim]: the largest standard deviation of their effect on Σ dK of a column. */
  readonly columns: Float64Array;
  /**
   * [batch, kv heads]: √Σ (scale·|ε|·|q|)², or the same of dO; times the largest row of a pattern, it is the largest standard
   * deviation of the effect on a projection of dK.
   */
  readonly norm: Float64Array;
  /**
   * [batch, kv heads]: the same of a head's dK projected on the exact one, and on K; null where only `norm` is known, as for a
   * sample of keys.
   */
  readonly slope: Float64Array | null;
  readonly pairing: Float64Array | null;
}

/** Random errors of the row sums D, as standard deviations, [batch, heads, queries]; 0 for rows that have none. */
function meanDeviations(
  problem: Problem,
  dout: Float64Array,
  { reference, mean }: Pick<MeasuredGradients, 'reference' | 'mean'>,
  premises: GradientPremises,
): Float64Array {
  const { batch, heads, kvHeads, groupSize, queries, keys, vDim } = problemShape(problem);
  const values = decodeTensor(problem.v);
  const ofP = unitRoundoff(formats[premises.p]);
  const ofDp = unitRoundoff(formats[premises.dp]) + unitRoundoff(formats[premises.scores]);
  const { out } = reference.quantities;
  const sigma = new Float64Array(batch * heads * queries);
  for (let head = 0; head < batch * heads; head++) {
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const largest = new Float64Array(vDim);
    for (let i = kvHead * keys * vDim; i < (kvHead + 1) * keys * vDim; i++)
      largest[i % vDim] = Math.max(largest[i % vDim], Math.abs(values[i]));
    for (let row = head * queries; row < (head + 1) * queries; row++) {
      if (levels[reference.level[row]] === 'special') continue;
      // Σ P²x² is at most the largest P times Σ P x².
      const heaviest = Math.min(1, Math.exp(reference.maximum[row] - reference.denominator[row]));
      let variance = 0;
      let sizes = 0;
      let reach = 0;
      for (let c = 0; c < vDim; c++) {
        const at = row * vDim + c;
        const half = outputRounding(premises.o, out.values[at], 0);
        const ofWeights = ofP ** 2 * heaviest * out.magnitude[at] * largest[c];
        variance += dout[at] ** 2 * (half ** 2 + ofWeights);
        sizes += Math.abs(dout[at] * out.values[at]);
        reach += Math.abs(dout[at]) * largest[c];
      }
      variance +=
        (ofDp ** 2 + (premises.dp === 'fp32' ? 0 : ofP ** 2)) *
        heaviest *
        mean.magnitude[row] *
        reach;
      variance += (vDim * premises.accumulation * sizes) ** 2;
      sigma[row] = Math.sqrt(variance);
    }
  }
  return sigma;
}

/** The mean of a pattern over each query's keys, by the query's weights: [batch, heads, queries, columns]. */
function weightedMeans(problem: Problem, pattern: Float64Array, columns: number): Float64Array {
  const { batch, kvHeads, keys } = problemShape(problem);
  // The weights of D are those before dropout; `stored` describes another V.
  const plain = Object.fromEntries(
    Object.entries(problem).filter(([name]) => name !== 'dropout' && name !== 'stored'),
  ) as unknown as Problem;
  const v = { format: 'fp64', shape: [batch, kvHeads, keys, columns], data: pattern } as const;
  const { quantities } = attentionOracle({ ...plain, v }, { accuracy: coarse });
  return quantities.out.values;
}

/** The accuracy that statistics need. */
const coarse = { outputFormat: 'fp32', ulpFraction: 0, magnitudeFraction: 2 ** -20 } as const;

/** Rows of two matrices side by side. */
function sideBySide(a: Float64Array, b: Float64Array, columns: number): Float64Array {
  const both = new Float64Array(2 * a.length);
  for (let row = 0; row * columns < a.length; row++) {
    both.set(a.subarray(row * columns, (row + 1) * columns), 2 * row * columns);
    both.set(b.subarray(row * columns, (row + 1) * columns), (2 * row + 1) * columns);
  }
  return both;
}

/**
 * The effect of a correct kernel's errors of D on sums over dK: those of O's rounding, of P's before O, of the sum itself,
 * or of dP where D is made of that. Also those of the LSE, by which all dT of a row, Σ |dT| ≤ 2 Σ P|dP|, are too large.
 * @param dout decoded
 */
export function measureMeanErrors(
  problem: Problem,
  dout: Float64Array,
  measured: Pick<MeasuredGradients, 'reference' | 'mean' | 'gradients' | 'weightVariance'>,
  premises: GradientPremises,
): MeanErrors {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim } = problemShape(problem);
  const sigma = meanDeviations(problem, dout, measured, premises);
  const q = decodeTensor(problem.q);
  const exact = measured.gradients.dk.exact.values;
  const isWhole = exact.length === batch * kvHeads * keys * qkDim;
  // Under a softcap the errors have its derivative too.
  const means =
    isWhole && problem.softcap === null && exact.every(Number.isFinite)
      ? weightedMeans(problem, sideBySide(exact, decodeTensor(problem.k), qkDim), 2 * qkDim)
      : null;
  const columns = new Float64Array(batch * kvHeads * qkDim);
  const [norm, slope, pairing] = [0, 1, 2].map(() => new Float64Array(batch * kvHeads));
  const longest = [exact, decodeTensor(problem.k)].map((pattern) =>
    longestRows(pattern, batch * kvHeads, qkDim),
  );
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const projected = [0, 0];
    const ofWeights = 4 * measured.weightVariance[row] * measured.mean.magnitude[row] ** 2;
    let squares = 0;
    for (let c = 0; c < qkDim; c++) {
      const moved = problem.scale * sigma[row] * q[row * qkDim + c];
      if (!Number.isFinite(moved)) continue;
      const scaled = ofWeights * (problem.scale * q[row * qkDim + c]) ** 2;
      columns[kvHead * qkDim + c] += moved ** 2 + scaled;
      norm[kvHead] += moved ** 2 + scaled;
      squares += scaled;
      if (means === null) continue;
      projected[0] += moved * means[2 * row * qkDim + c];
      projected[1] += moved * means[(2 * row + 1) * qkDim + c];
    }
    slope[kvHead] += projected[0] ** 2 + squares * longest[0][kvHead] ** 2;
    pairing[kvHead] += projected[1] ** 2 + squares * longest[1][kvHead] ** 2;
  }
  return {
    columns: roots(columns),
    norm: roots(norm),
    slope: means === null ? null : roots(slope),
    pairing: means === null ? null : roots(pairing),
  };
}

// An unknown deviation counts as infinite, which makes no test.
function roots(squares: Float64Array): Float64Array {
  return squares.map((x) => (Number.isNaN(x) ? Infinity : Math.sqrt(x)));
}

/** The length of the longest row of each head; 0 for a head without rows. */
function longestRows(values: Float64Array, heads: number, columns: number): Float64Array {
  const longest = new Float64Array(heads);
  const ofHead = values.length / Math.max(heads, 1);
  for (let from = 0; from < values.length; from += columns) {
    let squares = 0;
    for (let i = from; i < from + columns; i++) squares += values[i] ** 2;
    const head = Math.floor(from / ofHead);
    if (Number.isFinite(squares)) longest[head] = Math.max(longest[head], Math.sqrt(squares));
  }
  return longest;
}

/**
 * The effect of a correct kernel's errors of the LSE on sums over dV: an error λ of a row's LSE moves every key's dV by λ P m dO, and Σ P m ≤
 * 1/(1 − p) under dropout.
 * @param dout decoded
 */
export function measureWeightErrors(
  problem: Problem,
  dout: Float64Array,
  { weightVariance }: Pick<MeasuredGradients, 'weightVariance'>,
): MeanErrors {
  const { batch, heads, kvHeads, groupSize, queries, vDim } = problemShape(problem);
  const share = 1 - (problem.dropout?.probability ?? 0);
  const columns = new Float64Array(batch * kvHeads * vDim);
  const norm = new Float64Array(batch * kvHeads);
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    for (let c = 0; c < vDim; c++) {
      const moved = weightVariance[row] * (dout[row * vDim + c] / share) ** 2;
      if (!Number.isFinite(moved)) continue;
      columns[kvHead * vDim + c] += moved;
      norm[kvHead] += moved;
    }
  }
  return { columns: roots(columns), norm: roots(norm), slope: null, pairing: null };
}

/** Errors that rows of a gradient share. */
export interface RowsTogether {
  readonly dk: MeanErrors;
  readonly dv: MeanErrors;
}

/** The shared errors of one gradient: none for a gradient whose rows err independently. */
export function togetherOf(
  together: RowsTogether,
  name: JudgedGradientName,
  heads: number,
  columns: number,
): MeanErrors {
  return name === 'dk' || name === 'dv' ? together[name] : noMeanErrors(heads, columns);
}

/** The shared errors of gradients whose rows err independently. */
export function noMeanErrors(heads: number, columns: number): MeanErrors {
  const none = new Float64Array(heads);
  return { columns: new Float64Array(heads * columns), norm: none, slope: none, pairing: none };
}
