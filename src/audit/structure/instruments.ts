import { type AttentionReference, levels } from '../../../oracles/index.js';
import { decodeTensor, type FormatName, formats, unitRoundoff } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import type { RowElements } from './row-elements.js';
import type { RowSurvey } from './survey-rows.js';

/** Mean square of the relative rounding error of a number whose logarithm is uniform, in units of u². */
const meanSquareRounding = 0.18;

/** Mean square of the effect of roundings within a kernel on an element, from Σ w|v| and Σ w². */
function innerNoise(
  bound: KernelBound,
  weightFormat: FormatName,
  squares: Float64Array,
): (row: number) => number {
  const roundoff = unitRoundoff(formats[weightFormat]);
  return (row) => {
    const { keys, addition, typicalWeight } = bound.row(row);
    const ofWeight = meanSquareRounding * roundoff ** 2 + (typicalWeight / 8) ** 2;
    return ofWeight * squares[row] + (keys * addition ** 2) / 8;
  };
}

/** The data that instruments are made from. */
interface InstrumentRequest {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly bound: KernelBound;
  readonly weightFormat: FormatName;
}

/** Makes the instruments of `rows` rows from row `first` of all on, which are loaded. */
export type InstrumentMaker = (elements: RowElements, first: number, rows: number) => void;

/**
 * The instruments of the structure tests, in this order: a direction X that the kernel's error r is projected on, which does not
 * depend on the output, and the pattern Y whose multiple is looked for, so that Σ r·X / Σ Y·X is 1 for r = Y.
 * - scale: Y = O, each element by the inverse of its noise.
 * - scale without the value of the row's heaviest key: the rounding of its weight does not show.
 * - bias: Y = 1, weighed alike.
 * - truncation: Y = half an ulp of O away from zero, weighed alike.
 *
 * Directions are those of least squares: an element counts by the inverse of its expected noise (which need not
 * be right for a test to be sound). Zero for rows that no statistic admits.
 */
export function createInstruments(
  { problem, reference, bound, weightFormat }: InstrumentRequest,
  { heaviest, squares }: RowSurvey,
): InstrumentMaker {
  const { vDim, heads, kvHeads, groupSize, queries, keys } = reference.shape;
  const noiseOf = innerNoise(bound, weightFormat, squares);
  const hasNone = (row: number) => levels[reference.level[row]] === 'special' || heaviest[row] < 0;
  return (elements, first, rows) => {
    const noise = Float64Array.from({ length: rows }, (_, i) =>
      hasNone(first + i) ? NaN : noiseOf(first + i),
    );
    elements.makeInstruments(noise, (i, values) => {
      const head = Math.floor((first + i) / queries);
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const from = (kv * keys + heaviest[first + i]) * vDim;
      decodeTensor(problem.v, from, from + vDim, values);
    });
  };
}
