import { formats, round } from '../../src/formats/index.js';

/** Products of one fused sum, and fraction bits that its terms are aligned to: fp16 into fp16 on sm_80 to sm_90 and later. */
export interface HalfSums {
  readonly productsPerSum: number;
  readonly alignedFractionBits: number;
}

const { fp16 } = formats;

/** The exponent of an fp16 number as a tensor core reads it: a subnormal has that of the smallest normal number. */
function exponentOf(x: number): number {
  return x === 0 ? -Infinity : Math.max(fp16.minExponent, Math.floor(Math.log2(Math.abs(x))));
}

/** fp16 numbers with the exponents of their significands. */
export interface HalfNumbers {
  readonly values: Float64Array;
  readonly exponents: Float64Array;
}

/** Exponents of fp16 numbers, found once for many products. */
export function halfNumbers(values: Float64Array): HalfNumbers {
  return { values, exponents: values.map(exponentOf) };
}

/**
 * A function that adds products of fp16 numbers from 0 in fp16, as a chain of tensor-core instructions does: in each, terms are
 * aligned to the largest exponent, truncated and added exactly, and the sum is rounded to fp16. The bits are those of
 * `tensorCoreProduct`, at a hundredth of its time.
 * @returns a function of the weights of a row, the first of them, the values [keys × columns] and a column
 */
export function halfSums({ productsPerSum, alignedFractionBits }: HalfSums, keys: number) {
  return (
    weights: HalfNumbers,
    first: number,
    values: HalfNumbers,
    columns: number,
    column: number,
  ): number => {
    let sum = 0;
    for (let begin = 0; begin < keys; begin += productsPerSum) {
      const end = Math.min(keys, begin + productsPerSum);
      let largest = exponentOf(sum);
      for (let j = begin; j < end; j++) {
        const exponent = weights.exponents[first + j] + values.exponents[j * columns + column];
        if (exponent > largest) largest = exponent;
      }
      if (largest === -Infinity) continue;
      if (!Number.isFinite(largest)) {
        // An infinity or a NaN: what it makes of the sum is as for real numbers.
        for (let j = begin; j < end; j++)
          sum += weights.values[first + j] * values.values[j * columns + column];
        continue;
      }
      const unit = 2 ** (alignedFractionBits - largest);
      let units = Math.trunc(sum * unit);
      for (let j = begin; j < end; j++)
        units += Math.trunc(weights.values[first + j] * values.values[j * columns + column] * unit);
      sum = round(fp16, units / unit) + 0;
    }
    return sum;
  };
}
