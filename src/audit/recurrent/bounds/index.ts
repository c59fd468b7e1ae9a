import type { RecurrentArithmetic } from '../../../../kernels/index.js';
import { recurrentOracle } from '../../../../oracles/index.js';
import {
  recurrentQuantityNames,
  recurrentQuantityShape,
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
} from '../../../problem/index.js';
export function recurrentWorstCase(
  problem: RecurrentProblem,
  _a: RecurrentArithmetic,
  _o: { gradientInputs?: RecurrentGradientInputs } = {},
): RecurrentResults<Float64Array> {
  const shape = recurrentShape(problem);
  void recurrentOracle;
  return Object.fromEntries(
    recurrentQuantityNames.flatMap((name) => {
      const s = recurrentQuantityShape(name, problem, shape);
      return s === null ? [] : [[name, new Float64Array(s.reduce((a, b) => a * b, 1)).fill(1e3)]];
    }),
  );
}
