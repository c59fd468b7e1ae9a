import { decodeToFloat64, encodeFromFloat64, formats, type Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';

/**
 * LSEs in base 2 as natural logarithms, rounded as a kernel that gives these rounds: times ln 2, in their format.
 * @throws RequestError for a format shorter than fp32, whose rounding would count twice, and for another base
 */
export function naturalLse(lse: Tensor, base: string | undefined): Tensor {
  if (base === undefined || base === 'e') return lse;
  if (base !== '2') throw new RequestError(`--lse-base is ${JSON.stringify(base)}; give e or 2`);
  const format = formats[lse.format];
  if (format.precision < formats.fp32.precision)
    throw new RequestError(
      `--lse-base 2 converts LSEs in fp32 and fp64, and this one is in ${lse.format}; dump it in fp32`,
    );
  const values = decodeToFloat64(lse.data, format).map((x) => x * Math.LN2);
  return { ...lse, data: encodeFromFloat64(format, values) };
}
