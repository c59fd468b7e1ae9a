import {
  encodeFromFloat64,
  formats,
  type FormatName,
  type Tensor,
} from '../../../src/formats/index.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentProblem,
  type RecurrentQuantityName,
  type RecurrentResults,
} from '../../../src/problem/index.js';
import type { RecurrentArithmetic } from '../arithmetic.js';
import { roundingTo } from '../rounding.js';
import { runRecurrence, type RecurrentRunOptions } from '../run-recurrence.js';

/**
 * The tensors that a kernel of such an arithmetic writes, rounded to its formats, to nearest.
 * @throws RequestError for tensors that do not fit together
 */
export function emulateRecurrence(
  problem: RecurrentProblem,
  arithmetic: RecurrentArithmetic,
  options: RecurrentRunOptions = {},
): RecurrentResults {
  const results = runRecurrence(problem, arithmetic, roundingTo(arithmetic), options);
  const shape = recurrentShape(problem);
  const tensors: Partial<Record<RecurrentQuantityName, Tensor>> = {};
  for (const name of recurrentQuantityNames) {
    const values = results[name];
    const sizes = recurrentQuantityShape(name, problem, shape);
    if (values === undefined || sizes === null) continue;
    const format: FormatName = arithmetic.outputs[name] ?? 'fp32';
    tensors[name] = { format, shape: sizes, data: encodeFromFloat64(formats[format], values) };
  }
  return tensors;
}
