import { convertFloat32Bits, decode, encode, formats } from '../../formats/index.js';
import type {
  FormatName,
  NumberFormat,
  OverflowMode,
  RoundingMode,
  RoundingOptions,
} from '../../formats/index.js';
import { lazily } from '../../lazily.js';
import { RequestError } from '../../request-error.js';

/** The formats between which the modelled instructions convert. */
export type ConversionFormat = Exclude<FormatName, 'fp64' | 'tf32'>;

/** How an instruction rounds and what becomes of the values that its result cannot hold. */
export interface ConversionRule {
  /** Null where the instruction names none, since every result is exact. */
  readonly rounding: RoundingMode | null;
  /** What becomes of values beyond the destination's largest finite number, infinities included. */
  readonly overflow: OverflowMode;
  /**
   * What a NaN becomes. `canonical`: the destination's canonical NaN, whatever its sign and payload.
   * `extended`: the input's pattern followed by zeros, so that sign and payload survive and a
   * signaling NaN stays signaling.
   */
  readonly nan: 'canonical' | 'extended';
}

/** One conversion instruction: what it does, and its model of one lane. */
export interface Conversion extends ConversionRule {
  readonly source: ConversionFormat;
  readonly destination: ConversionFormat;
  /**
   * From the bit pattern of a number of `source` to that of the result in `destination`, both from 0
   * to 2^storageBits − 1. Rounds as `rounding` says; subnormal inputs and results are kept. Throws a
   * RequestError for what is no bit pattern of the source.
   */
  readonly evaluate: (bits: number) => number;
  /**
   * `evaluate` of each element: `results[i]` from `inputs[i]`, zero-extended. Throws a RequestError
   * when `results` is shorter than `inputs` or an input is no bit pattern of the source.
   */
  readonly evaluateArray: (inputs: Uint32Array, results: Uint32Array) => void;
}

function laneModel(
  source: NumberFormat<ConversionFormat>,
  destination: NumberFormat<ConversionFormat>,
  options: RoundingOptions,
  nan: ConversionRule['nan'],
): Conversion['evaluate'] {
  const extension = 2 ** (destination.storageBits - source.storageBits);
  return (bits) => {
    const value = decode(source, bits);
    return Number.isNaN(value) && nan === 'extended'
      ? bits * extension
      : encode(destination, value, options);
  };
}

/** A source of at most 16 bits has few enough patterns for a table of all results. */
function tableModel(
  source: NumberFormat<ConversionFormat>,
  evaluate: Conversion['evaluate'],
): Conversion['evaluateArray'] {
  const size = 2 ** source.storageBits;
  const table = lazily(() => Uint32Array.from({ length: size }, (_, bits) => evaluate(bits)));
  return (inputs, results) => {
    if (results.length < inputs.length)
      throw new RequestError(
        `${inputs.length} inputs but room for ${results.length} results; pass a longer array`,
      );
    const resultOf = table();
    for (let i = 0; i < inputs.length; i++) {
      const bits = inputs[i];
      if (bits >= size)
        throw new RequestError(
          `input ${i}, 0x${bits.toString(16)}, is no ${source.name} bit pattern; pass integers below 2^${source.storageBits}`,
        );
      results[i] = resultOf[bits];
    }
  };
}

/** The model of an instruction that converts from `source` to `destination` by the rule. */
export function modelConversion(
  source: ConversionFormat,
  destination: ConversionFormat,
  rule: ConversionRule,
): Conversion {
  const [from, to] = [formats[source], formats[destination]];
  const options = { rounding: rule.rounding ?? 'nearest-even', overflow: rule.overflow } as const;
  const evaluate = laneModel(from, to, options, rule.nan);
  const evaluateArray: Conversion['evaluateArray'] =
    from.name === 'fp32' && to.name !== 'fp32'
      ? (inputs, results) => convertFloat32Bits(to, inputs, results, options)
      : tableModel(from, evaluate);
  return { source, destination, ...rule, evaluate, evaluateArray };
}
