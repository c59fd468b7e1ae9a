import type {
  RecurrentArithmetic,
  RecurrentRounding,
  RecurrentValue,
} from '../../../kernels/index.js';
import { recurrentValues } from '../../../kernels/index.js';
import { formats, round, smallestNormal, type FormatName } from '../../../src/formats/index.js';

/** Half the distance of neighbours of a format at x. */
function halfUlp(name: FormatName, x: number): number {
  const format = formats[name];
  const size = Math.max(Math.abs(x), smallestNormal(format));
  return 2 ** (Math.floor(Math.log2(size)) - format.precision);
}

/**
 * A rounding that moves every value by half an ulp in a direction of its own; `direction` is asked for each, in the order of the kernel, and may be any number
 * from −1 to 1. Results are not rounded. Values of the same name and place in time are the same value in every run.
 */
export function directed(
  { formats: of }: RecurrentArithmetic,
  direction: (index: number) => number,
): RecurrentRounding {
  let index = 0;
  return {
    value(name, values, first, end) {
      const format = of[name];
      if (format === 'fp64') return;
      for (let i = first; i < end; i++) {
        const sign = direction(index++);
        // What a format holds, 0 and infinities too, it does not round.
        if (sign !== 0 && round(formats[format], values[i]) !== values[i])
          values[i] += sign * halfUlp(format, values[i]);
      }
    },
    output: () => {},
  };
}

/** An arithmetic of all values in fp32 but for those of a chunk's products, in `short`. */
export function shortArithmetic(
  form: 'recurrent' | 'chunked',
  chunk: number,
  short: FormatName,
  state: FormatName = 'fp32',
): RecurrentArithmetic {
  const wide = new Set<RecurrentValue>(['gates', 'decay', 'triangle', 'sum']);
  const entries = recurrentValues.map((name) => {
    if (name === 'state') return [name, state] as const;
    return [name, form === 'recurrent' || wide.has(name) ? 'fp32' : short] as const;
  });
  return {
    form,
    chunk,
    inverse: chunk > 4 ? { block: 4 } : 'substitution',
    formats: Object.fromEntries(entries) as RecurrentArithmetic['formats'],
    outputs: {},
  };
}
