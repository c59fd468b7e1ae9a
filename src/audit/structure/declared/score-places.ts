import type { AttentionReference, WeightTile } from '../../../../oracles/index.js';
import { decodeTensor, formats, unitRoundoff, type FormatName } from '../../../formats/index.js';
import { problemShape, type Problem } from '../../../problem/index.js';
import { createAddends } from '../../bounds/addend.js';
import type { Premises } from '../../premises/premises.js';
import { CommonOffset } from '../common-offset.js';
import { walkRows } from '../structure-statistic.js';

/** Channels of the sums: the instruments of scale and of bias, and the LSE. */
export const channels = ['scale', 'bias', 'lse-mean'] as const;

/** Number of times that a score itself is written, raw and scaled; it is written once more less the maximum. */
const writesOfScore = 2;
/** The same for the second order of roundings, addends included. */
const mostWrites = 3;

/** The most significant bits of a format whose roundings the places tell. */
const finestPrecision = 12;

/**
 * The format that scores are written in, where the exact weights tell what was written; null where scores are not written in a
 * short format, or are capped or added to on the way.
 */
export function writtenFormat(problem: Problem, { scores, maximum }: Premises): FormatName | null {
  const isPlain =
    maximum === 'row' &&
    problem.softcap === null &&
    createAddends(problem, problemShape(problem)) === null;
  return scores !== null && isPlain && formats[scores].precision <= finestPrecision ? scores : null;
}

/** Sums of the roundings of written scores, as data: by channel, by place in an octave. */
export interface ScorePlacesState {
  /** Sums for scores, and for their distances from the maximum. */
  readonly scores: Float64Array;
  readonly distances: Float64Array;
}

/**
 * Sums the effect of a relative error of written scores, Σ c·s by the place of s in its octave, for scores and for their distances
 * from the maximum: the roundings that all rows share follow from it (docs/theory/bounds.md, Theorem 14). For single rows it has the second
 * order of roundings, which is of one sign.
 */
export class ScorePlaces {
  readonly #offset: CommonOffset;
  readonly #scores: Float64Array;
  readonly #distances: Float64Array;
  readonly #roundoff: number;
  readonly #reference: AttentionReference;
  readonly #sinks: Float64Array | null;
  readonly #own = new Float64Array(walkRows * channels.length);
  /** The second order of roundings, by row and channel. */
  readonly #curvature = new Float64Array(walkRows * channels.length);
  #first = 0;

  constructor(problem: Problem, reference: AttentionReference, format: FormatName) {
    this.#offset = new CommonOffset(format);
    this.#roundoff = unitRoundoff(formats[format]);
    this.#scores = new Float64Array(channels.length * this.#offset.places);
    this.#distances = new Float64Array(channels.length * this.#offset.places);
    this.#reference = reference;
    this.#sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  }

  /**
   * Starts `rows` rows from row `first` of all on.
   * @param ownOf O·X of each of them by instrument
   */
  begin(first: number, rows: number, ownOf: (i: number) => Float64Array): void {
    const { heads, queries } = this.#reference.shape;
    this.#first = first;
    this.#curvature.fill(0);
    for (let i = 0; i < rows; i++) {
      const row = first + i;
      const own = ownOf(i);
      [own[0], own[2]].forEach((x, d) => (this.#own[channels.length * i + d] = x));
      const sink = this.#sinks?.[Math.floor(row / queries) % heads] ?? -Infinity;
      if (sink > -Infinity) this.#addSink(i, row, sink);
    }
  }

  /** Adds a sink's score, which is one number for all rows: its roundings count in full, except for that of its distance. */
  #addSink(i: number, row: number, sink: number): void {
    const { denominator, maximum, quantities } = this.#reference;
    const weight = Math.exp(sink - denominator[row]);
    const ofLse = weight * Math.exp(denominator[row] - quantities.lse.values[row]);
    const distance = Math.abs(sink - Math.max(sink, maximum[row]));
    const error = this.#roundoff * (mostWrites * Math.abs(sink) + distance);
    const size = [
      Math.abs(this.#own[channels.length * i]),
      Math.abs(this.#own[channels.length * i + 1]),
    ];
    size.forEach((own, d) => (this.#curvature[channels.length * i + d] += error * weight * own));
    this.#curvature[channels.length * i + 2] += error * Math.min(ofLse, 1);
  }

  /** Adds a tile of weights of the rows that are used. */
  visit(
    { rows, keys, stride, weights, applied, projections }: WeightTile,
    isUsed: (i: number) => boolean,
  ): void {
    const { denominator, maximum, quantities } = this.#reference;
    const count = channels.length;
    const { places } = this.#offset;
    const [ofScale, , ofBias] = projections;
    const c = new Float64Array(count);
    const second = this.#roundoff ** 2 / 6;
    for (let i = 0; i < rows; i++) {
      if (!isUsed(i)) continue;
      const row = this.#first + i;
      const ofLse = Math.min(Math.exp(denominator[row] - quantities.lse.values[row]), 2 ** 500);
      for (let j = i * stride; j < i * stride + keys; j++) {
        const w = weights[j];
        if (w === 0) continue;
        const score = Math.log(w) + denominator[row];
        const distance = Math.max(0, maximum[row] - score);
        c[0] = applied[j] * ofScale[j] - w * this.#own[count * i];
        c[1] = applied[j] * ofBias[j] - w * this.#own[count * i + 1];
        c[2] = w * ofLse;
        const ofScore = placeOf(score, places);
        const ofDistance = placeOf(distance, places);
        const squares = second * (mostWrites * score * score + distance * distance);
        for (let d = 0; d < count; d++) {
          this.#scores[d * places + ofScore] += c[d] * score;
          this.#distances[d * places + ofDistance] += c[d] * distance;
          this.#curvature[count * i + d] += Math.abs(c[d]) * squares;
        }
      }
    }
  }

  /** The second order of roundings, and a sink's roundings in full, in the `i`-th row, by channel. */
  curvature(i: number): Float64Array {
    return this.#curvature.subarray(channels.length * i, channels.length * (i + 1));
  }

  state(): ScorePlacesState {
    return { scores: this.#scores.slice(), distances: this.#distances.slice() };
  }

  clear(): void {
    this.#scores.fill(0);
    this.#distances.fill(0);
  }
}

/** The place of a number in its octave, by its logarithm. */
function placeOf(x: number, places: number): number {
  const size = Math.abs(x);
  if (!(size > 2 ** -1000)) return 0;
  const at = Math.log2(size);
  return Math.min(places - 1, Math.floor((at - Math.floor(at)) * places));
}

/** Joins the sums of roundings with those of more rows. */
export function joinScorePlaces(
  known: ScorePlacesState | null,
  more: ScorePlacesState,
): ScorePlacesState {
  if (known === null) return more;
  return {
    scores: known.scores.map((x, i) => x + more.scores[i]),
    distances: known.distances.map((x, i) => x + more.distances[i]),
  };
}

/** The largest sums, by channel, of roundings that are those of one factor on all scores: Theorem 14. */
export function sharedRoundings(format: FormatName, { scores, distances }: ScorePlacesState) {
  const offset = new CommonOffset(format);
  return channels.map((_, d) => {
    const of = (sums: Float64Array) => sums.subarray(d * offset.places, (d + 1) * offset.places);
    const [ofScores, ofDistances] = offset.largest(of(scores), of(distances));
    return writesOfScore * ofScores + ofDistances;
  });
}
