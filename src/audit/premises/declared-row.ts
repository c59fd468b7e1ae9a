import {
  decodeTensor,
  type FormatName,
  formats,
  type NumberFormat,
  type OverflowMode,
  round,
  smallestNormal,
} from '../../formats/index.js';
import {
  keptWeights,
  keysOf,
  type Problem,
  problemMask,
  type ProblemShape,
  scoreLaw,
} from '../../problem/index.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import { workingFormat } from './premises.js';
import { resolvePremises } from './resolve-premises.js';

/** A rounding to a format. */
export type Rounder = (x: number) => number;

/**
 * Rounds to nearest, by Veltkamp's splitting where the number is normal, for which a tie may go either way:
 * for emulations that are to err as much as a kernel, not to have its bits.
 * @param overflow the treatment of numbers beyond the largest
 */
export function rounderTo(name: FormatName, overflow: OverflowMode = 'saturate'): Rounder {
  const format = formats[name];
  const least = smallestNormal(format);
  const most = format.maxFinite / 2;
  const split = 2 ** (53 - format.precision) + 1;
  if (name === 'fp64') return (x) => x;
  if (name === 'fp32' && overflow === 'overflow') return Math.fround;
  return (x) => {
    const size = Math.abs(x);
    if (!(size >= least && size <= most)) return round(format, x, { overflow });
    const c = x * split;
    return c - (c - x);
  };
}

/** One row as a plain kernel of some premises would have it. */
interface EmulatedRow {
  readonly out: Float64Array;
  readonly lse: number;
}

/** The order of a plain kernel's sums, where a premise says that it shows. */
export interface SumOrder {
  /** Products that a sum in a short format takes in at a time, as a tensor core does. */
  readonly chunk: number;
  /** Keys of a split whose partial result is stored. */
  readonly split: number;
}

/** One product after the other, and a result for every 64 keys. */
export const usualOrder: SumOrder = { chunk: 1, split: 64 };

function roundingTo(format: FormatName | null): Rounder {
  return rounderTo(format ?? 'fp32', 'overflow');
}

/** Rounds to an output's format as declared; stochastic by a fixed sequence, which serves to measure. */
function outputRounder(
  format: NumberFormat,
  declared: PremiseDeclaration['outputRounding'],
): Rounder {
  if (declared === undefined || declared === 'nearest') return (x) => round(format, x);
  if (declared === 'truncated') return (x) => round(format, x, { rounding: 'toward-zero' });
  let state = 1;
  return (x) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const low = round(format, x, { rounding: 'down' });
    const high = round(format, x, { rounding: 'up' });
    return state / 2 ** 32 < (x - low) / (high - low) ? high : low;
  };
}

/**
 * Makes a function that computes rows as a plain kernel of the declared premises would, one operation
 * after the other: to see how large its errors are, not to have any kernel's bits. Sums go in ascending
 * order; weights are divided by their sum before they are rounded where scores are written, as frameworks
 * do, else after. Maxima and factors are those of any kernel.
 */
export function createDeclaredRows(
  problem: Problem,
  shape: ProblemShape,
  outputFormat: FormatName,
  declared: PremiseDeclaration,
  { chunk, split }: SumOrder = usualOrder,
): (row: number) => EmulatedRow {
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const working = workingFormat(problem.q.format, outputFormat);
  const named = (name: FormatName | 'input' | undefined) =>
    name === undefined ? null : name === 'input' ? working : name;
  const ofScores = roundingTo(named(declared.scores));
  const { weightFormat, weightScale } = resolvePremises(problem, outputFormat, declared);
  const toWeightFormat = rounderTo(weightFormat, 'overflow');
  const ofWeights = (p: number) => toWeightFormat(p * weightScale) / weightScale;
  const ofDots = roundingTo(named(declared.qkAccumulator));
  const ofSums = roundingTo(named(declared.pvAccumulator));
  const ofPartials = declared.partials === undefined ? null : roundingTo(named(declared.partials));
  const ofOperands = roundingTo(working);
  const ofDequantized = roundingTo(declared.dequantized ?? null);
  const ofOutput = outputRounder(formats[outputFormat], declared.outputRounding);
  const { scale, softcap } = problem;
  const isRooted = declared.scale === 'root-of-both';
  const isOfQuery = declared.scale === 'q-before-rounding';
  const root = Math.sqrt(Math.abs(scale));
  const dividesFirst = declared.scores !== undefined;

  /** One head of a tensor, decoded, and rounded with the scale where it is. */
  const decoded = new Map<string, Float64Array>();
  function headOf(name: 'q' | 'k' | 'v', head: number, rows: number, dim: number): Float64Array {
    const known = decoded.get(`${name}${head}`);
    if (known !== undefined) return known;
    const values = decodeTensor(problem[name], head * rows * dim, (head + 1) * rows * dim);
    if (declared.dequantized !== undefined && problem[name].scales !== undefined)
      for (let i = 0; i < values.length; i++) values[i] = ofDequantized(values[i]);
    const factor = name === 'v' ? 1 : isRooted ? root : isOfQuery && name === 'q' ? scale : 1;
    if (factor !== 1)
      for (let i = 0; i < values.length; i++) values[i] = ofOperands(values[i] * factor);
    decoded.set(`${name}${head}`, values);
    return values;
  }

  // Loops for the usual fp32 sums of their own: `Math.fround` is an instruction, `ofSums` a call.
  /** q·k, every sum rounded. */
  function dotProduct(query: Float64Array, first: number, key: Float64Array, at: number): number {
    let dot = 0;
    if (declared.qkAccumulator === undefined)
      for (let t = 0; t < qkDim; t++) dot = Math.fround(dot + query[first + t] * key[at + t]);
    else
      for (let t = 0; t < qkDim; t++) {
        dot += query[first + t] * key[at + t];
        if ((t + 1) % chunk === 0 || t + 1 === qkDim) dot = ofDots(dot);
      }
    return dot;
  }

  const mask = problemMask(problem, shape);
  const { addend } = scoreLaw(problem, shape);
  const kept = keptWeights(problem, shape);
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const [added, isKept] = [new Float64Array(1), new Uint8Array(1)];

  return (row) => {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const visible = Int32Array.from(keysOf(mask.ranges(head, row % queries)));
    const query = headOf('q', head, queries, qkDim);
    const key = headOf('k', kv, keys, qkDim);
    const value = headOf('v', kv, keys, vDim);
    const first = (row % queries) * qkDim;
    const scores = new Float64Array(visible.length);
    let most = -Infinity;
    for (let j = 0; j < visible.length; j++) {
      const dot = dotProduct(query, first, key, visible[j] * qkDim);
      let score = ofScores(dot);
      if (!isRooted && !isOfQuery) score = ofScores(score * scale);
      else if (isRooted && scale < 0) score = -score;
      if (softcap !== null) score = ofScores(softcap * Math.tanh(score / softcap));
      if (addend !== null) {
        addend(head, row % queries, visible[j], added);
        score = ofScores(score + added[0]);
      }
      scores[j] = score;
      most = Math.max(most, score);
    }
    const ofKeys = most;
    const sink = sinks?.[head % heads] ?? -Infinity;
    most = Math.max(most, sink);
    const ofSink = sink === -Infinity ? 0 : Math.fround(Math.exp(sink - most));
    const weights = scores.map((s) => Math.fround(Math.exp(s - most)));
    const rounded = weights.map(ofWeights);
    const isRounded = declared.rowSum === 'after-rounding';
    const total = (isRounded ? rounded : weights).reduce((sum, p) => Math.fround(sum + p), ofSink);
    const applied = dividesFirst ? weights.map((p) => ofWeights(p / total)) : rounded;
    const out = new Float64Array(vDim);
    let sums = new Float64Array(vDim);
    const divisor = dividesFirst ? 1 : total;
    for (let j = 0; j < visible.length; j++) {
      kept?.fill(head, row % queries, visible[j], isKept);
      const isDropped = kept !== null && isKept[0] === 0;
      const p = isDropped ? 0 : applied[j] / (kept?.share ?? 1);
      const at = visible[j] * vDim;
      if (declared.pvAccumulator === undefined)
        for (let c = 0; c < vDim; c++) sums[c] = Math.fround(sums[c] + p * value[at + c]);
      else {
        const isRounded = (j + 1) % chunk === 0 || j + 1 === visible.length;
        for (let c = 0; c < vDim; c++) {
          const sum = sums[c] + p * value[at + c];
          sums[c] = isRounded ? ofSums(sum) : sum;
        }
      }
      const endsTile = declared.pvTile !== undefined && (j + 1) % declared.pvTile === 0;
      const endsSplit = ofPartials !== null && (j + 1) % split === 0;
      const ends = j + 1 === visible.length || endsTile || endsSplit;
      if (!ends) continue;
      for (let c = 0; c < vDim; c++)
        out[c] += ofPartials === null ? sums[c] / divisor : ofPartials(sums[c] / divisor);
      sums = new Float64Array(vDim);
    }
    if (sink === -Infinity || problem.sink?.inLse === true)
      return { out: out.map(ofOutput), lse: most + Math.log(total) };
    const alone = scores.reduce(
      (sum, s) => Math.fround(sum + Math.fround(Math.exp(s - ofKeys))),
      0,
    );
    return { out: out.map(ofOutput), lse: ofKeys + Math.log(alone) };
  };
}
