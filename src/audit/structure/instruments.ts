import { type AttentionReference, levels } from '../../../oracles/index.js';
import { decodeTensor, type FormatName, formats, unitRoundoff } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import { type KernelBound, outputRounding } from '../bounds/index.js';
import type { RowSurvey } from './survey-rows.js';

/**
 * A direction X that the kernel's error r is projected on, and the pattern Y whose multiple is looked for:
 * Σ r·X / Σ Y·X is 1 for r = Y. Both [batch, heads, queries, vDim]; X does not depend on the output.
 */
export interface Instrument {
  readonly direction: Float64Array;
  readonly pattern: Float64Array;
}

/** The instruments of the structure tests. */
interface Instruments {
  /** Y = O, each element by the inverse of its noise. */
  readonly scale: Instrument;
  /** The same without the value of the row's heaviest key: the rounding of its weight does not show. */
  readonly lightScale: Instrument;
  /** Y = 1, weighed alike. */
  readonly bias: Instrument;
  /** Y = half an ulp of O away from zero, weighed alike. */
  readonly truncation: Instrument;
}

/** Mean square of the relative rounding error of a number whose logarithm is uniform, in units of u². */
const meanSquareRounding = 0.18;

/** The part of a direction's square below which it is not free of fp64 roundings of the component that was removed. */
const negligible = 2 ** -20;

const root3 = Math.sqrt(3);

/** √(x² + y²), by squares where these are well within fp64's range: Math.hypot takes several times as long. */
function lengthOf(x: number, y: number): number {
  const squared = x * x + y * y;
  return squared > 2 ** -900 && squared < 2 ** 900 ? Math.sqrt(squared) : Math.hypot(x, y);
}

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

/** The data that instruments are made from: the formats are those of the output and of the weights. */
interface InstrumentRequest {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly bound: KernelBound;
  readonly outputFormat: FormatName;
  readonly weightFormat: FormatName;
}

/**
 * The directions of least squares: an element counts by the inverse of its expected noise (which need not
 * be right for a test to be sound). Zero for rows that no statistic admits.
 */
export function createInstruments(
  { problem, reference, bound, outputFormat, weightFormat }: InstrumentRequest,
  { heaviest, squares }: RowSurvey,
): Instruments {
  const {
    shape,
    quantities: {
      out: { values: out, magnitude },
    },
  } = reference;
  const { vDim, heads, kvHeads, groupSize, queries, keys } = shape;
  const zeros = () => new Float64Array(out.length);
  const [scale, light, bias, truncation, halves] = [zeros(), zeros(), zeros(), zeros(), zeros()];
  const noise = innerNoise(bound, weightFormat, squares);
  const weigh = (x: number, deviation: number) => {
    const weighed = x / deviation / deviation;
    return Number.isFinite(weighed) ? weighed : 0;
  };
  for (let row = 0; row < reference.quantities.lse.values.length; row++) {
    if (levels[reference.level[row]] === 'special' || heaviest[row] < 0) continue;
    const ofRow = Math.sqrt(noise(row));
    for (let at = row * vDim; at < (row + 1) * vDim; at++) {
      const exact = out[at];
      const half = outputRounding(outputFormat, exact, 0);
      const deviation = lengthOf(ofRow * magnitude[at], half / root3);
      halves[at] = half * Math.sign(exact);
      scale[at] = weigh(exact, deviation);
      bias[at] = weigh(1, deviation);
      truncation[at] = weigh(halves[at], deviation);
    }
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const from = (kv * keys + heaviest[row]) * vDim;
    const value = decodeTensor(problem.v, from, from + vDim);
    removeComponent(scale, light, row * vDim, value);
  }
  const ones = new Float64Array(out.length).fill(1);
  return {
    scale: { direction: scale, pattern: out },
    lightScale: { direction: light, pattern: out },
    bias: { direction: bias, pattern: ones },
    truncation: { direction: truncation, pattern: halves },
  };
}

/** Writes a row of `direction` less its component along `value` to `to`. */
function removeComponent(
  direction: Float64Array,
  to: Float64Array,
  first: number,
  value: Float64Array,
): void {
  let product = 0;
  let ofValue = 0;
  let before = 0;
  for (let c = 0; c < value.length; c++) {
    product += direction[first + c] * value[c];
    ofValue += value[c] ** 2;
    before += direction[first + c] ** 2;
  }
  const share = ofValue > 0 && Number.isFinite(product / ofValue) ? product / ofValue : 0;
  let after = 0;
  for (let c = 0; c < value.length; c++) {
    const x = direction[first + c] - share * value[c];
    to[first + c] = x;
    after += x * x;
  }
  if (!(after > negligible * before)) to.fill(0, first, first + value.length);
}
