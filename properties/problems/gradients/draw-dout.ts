import { formats, type FormatName, round } from '../../../src/formats/index.js';
import { outputShape, type PlainProblem } from '../plain-problem.js';
import type { RegimeName } from '../regimes/index.js';
import { fill, type RandomValues } from '../values.js';

/** Arguments for drawing the gradient of an output. */
interface DoutRequest {
  /** Number of elements, and of elements in a row. */
  readonly length: number;
  readonly columns: number;
  readonly random: RandomValues;
}

/** A regime of gradients of outputs. */
interface DoutKind {
  /** The appearance of these gradients, in one line. */
  readonly description: string;
  /** The behaviour of a kernel that they are meant to provoke, in one line. */
  readonly provokes: string;
  /** Relative probability of drawing it. */
  readonly odds: number;
  readonly draw: (request: DoutRequest) => Float64Array;
}

/** log2 of the factor of large gradients, at least and at most. */
const large = { least: 6, most: 10 };

/** The regimes of gradients of outputs, by their names. */
export const doutKinds = {
  normal: {
    description: 'standard normal',
    provokes: 'what is wrong everywhere',
    odds: 3,
    draw: ({ length, random }) => fill(length, random.normal),
  },
  'one-signed': {
    description: 'of one sign, with every bit of the significand in use',
    provokes: 'biased roundings of P and dS, which add up (arXiv 2510.04212)',
    odds: 1,
    draw: ({ length, random }) => {
      const sign = random.sign();
      return fill(length, () => sign * (1 + random.uniform()) * 2 ** random.integer(-1, 1));
    },
  },
  large: {
    description: 'normal, times 2^6 to 2^10',
    provokes: 'dS and sums that leave 16 bits',
    odds: 1,
    draw: ({ length, random }) => {
      const factor = 2 ** random.integer(large.least, large.most);
      return fill(length, () => factor * random.normal());
    },
  },
  'one-row': {
    description: 'zero but for one row of each head or so, normal there',
    provokes: 'rows that are taken for one another, and tiles that are lost or added twice',
    odds: 1,
    draw: ({ length, columns, random }) => {
      const values = new Float64Array(length);
      const rows = length / columns;
      for (let drawn = 0; drawn < Math.max(1, rows / 16) && rows > 0; drawn++) {
        const row = random.integer(0, rows - 1);
        for (let c = row * columns; c < (row + 1) * columns; c++) values[c] = random.normal();
      }
      return values;
    },
  },
  whole: {
    description: 'whole numbers from −2 to 2',
    provokes: 'sums that are exact, beside those that are not',
    odds: 1,
    draw: ({ length, random }) => fill(length, () => random.integer(-2, 2)),
  },
} satisfies Readonly<Record<string, DoutKind>>;

/** The name of one of {@link doutKinds}. */
export type DoutKindName = keyof typeof doutKinds;

/** Inputs of 8 bits have outputs, and gradients of these, of 16. */
function outputFormat(input: FormatName): FormatName {
  return formats[input].storageBits < 16 ? 'bf16' : input;
}

/**
 * The gradient of a problem's output, rounded to its format. Many equal maxima have one of one sign as often as not: biased
 * roundings add up where the values and it have one sign.
 */
export function drawDout(
  { sizes, formats: { v } }: Pick<PlainProblem, 'sizes' | 'formats'>,
  regime: RegimeName,
  random: RandomValues,
): NonNullable<PlainProblem['dout']> {
  const names = Object.keys(doutKinds) as DoutKindName[];
  const isBiased = regime === 'repeated-maxima' && random.integer(0, 1) === 0;
  const weighted = names.flatMap((name) => Array<DoutKindName>(doutKinds[name].odds).fill(name));
  const name = isBiased ? 'one-signed' : weighted[random.integer(0, weighted.length - 1)];
  const format = outputFormat(v);
  const length = outputShape(sizes).reduce((product, size) => product * size, 1);
  const values = doutKinds[name].draw({ length, columns: sizes.vDim, random });
  const { maxFinite } = formats[format];
  return {
    format,
    values: values.map((x) => round(formats[format], Math.min(Math.max(x, -maxFinite), maxFinite))),
  };
}
