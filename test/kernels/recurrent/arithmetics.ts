import { recurrentValues, type RecurrentArithmetic } from '../../../kernels/recurrent/index.js';
import type { FormatName } from '../../../src/formats/index.js';

const allFormats = (format: FormatName) =>
  Object.fromEntries(
    recurrentValues.map((value) => [value, format]),
  ) as RecurrentArithmetic['formats'];

/** Token by token in fp64. */
export const exactRecurrent: RecurrentArithmetic = {
  form: 'recurrent',
  chunk: 1,
  inverse: 'substitution',
  formats: allFormats('fp64'),
  outputs: {},
};

/** In chunks of so many tokens, in fp64. */
export const exactChunked = (
  chunk: number,
  inverse: RecurrentArithmetic['inverse'] = 'substitution',
): RecurrentArithmetic => ({ ...exactRecurrent, form: 'chunked', chunk, inverse });
