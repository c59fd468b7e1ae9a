import type { AttributedTileResult } from '../../kernels/index.js';
import { decodeToFloat64, formats, round } from '../formats/index.js';
import type { Problem, ProblemShape } from '../problem.js';
import type { WeightRounding } from './attribution.js';
import { ErrorMeter, type ErrorUnits } from './error-measure.js';
import type { RunPlan } from './run-plan.js';

/**
 * Splits the error of `p-round` alone into what the rounding of each row's largest weight does,
 * (round(p) − p)·v / l for its exact p and l, and the rest. Takes the former off the kernel's output
 * too, before that is rounded.
 */
export function createWeightRoundingMeter(
  problem: Problem,
  shape: ProblemShape,
  units: ErrorUnits,
  plan: RunPlan,
) {
  const { heads, kvHeads, groupSize, queries, keys, vDim } = shape;
  const format = formats[problem.q.format];
  const [largest, others, unrounded] = Array.from({ length: 3 }, () => new ErrorMeter(units));
  const [pRound, beforeRounding] = [plan.alone['p-round'], plan.without['output-round']];
  const value = new Float64Array(vDim);

  function addRow(result: AttributedTileResult, row: number, first: number): void {
    const key = result.largestKeys[row];
    let relative = 0;
    value.fill(0);
    if (key >= 0) {
      const head = Math.floor((first + row) / queries);
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const at = (kv * keys + key) * vDim;
      decodeToFloat64(problem.v.data, formats[problem.v.format], value, at, at + vDim);
      const weight = 2 ** result.largestExponents[row];
      relative = (round(format, weight) - weight) / result.rowSums[plan.none][row];
    }
    for (let c = 0; c < vDim; c++) {
      const element = (first + row) * vDim + c;
      const exact = units.exact[element];
      const error = relative * value[c];
      const whole = result.outputs[pRound][row * vDim + c] - exact;
      largest.add(element, error);
      others.add(element, whole - error);
      const mended = result.outputs[beforeRounding][row * vDim + c] - error;
      unrounded.add(element, round(format, mended) - exact);
    }
  }

  return {
    /** Takes the results of a tile whose first row is `first` among all rows. */
    addTile: (result: AttributedTileResult, first: number): void => {
      for (let row = 0; row < result.largestKeys.length; row++) addRow(result, row, first);
    },
    result: (): WeightRounding => ({
      largestWeight: largest.measure(),
      otherWeights: others.measure(),
      largestUnrounded: unrounded.measure(),
    }),
  };
}
