import type { AttributedPiece, LargestWeights } from '../../kernels/index.js';
import { decodeToFloat64, type FormatName, formats, round } from '../formats/index.js';
import { problemShape, type Problem } from '../problem/index.js';
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
  outFormat: FormatName,
  units: ErrorUnits,
  plan: RunPlan,
) {
  const { heads, kvHeads, groupSize, queries, keys, vDim } = problemShape(problem);
  const format = formats[outFormat];
  const [largest, others, unrounded] = Array.from({ length: 3 }, () => new ErrorMeter(units));
  const pRound: number | undefined = plan.alone['p-round'];
  const beforeRounding = plan.without['output-round'];
  const value = new Float64Array(vDim);

  function addRow(
    { outputs, firstRow }: AttributedPiece,
    { keys: largestKeys, weights, rounded, divisors }: LargestWeights,
    row: number,
    pRoundAlone: Float64Array,
  ): void {
    const key = largestKeys[row];
    let relative = 0;
    value.fill(0);
    if (key >= 0) {
      const head = Math.floor((firstRow + row) / queries);
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      const at = (kv * keys + key) * vDim;
      decodeToFloat64(problem.v.data, formats[problem.v.format], value, at, at + vDim);
      relative = (rounded[row] - weights[row]) / divisors[plan.none][row];
    }
    for (let c = 0; c < vDim; c++) {
      const element = (firstRow + row) * vDim + c;
      const exact = units.exact[element];
      const error = relative * value[c];
      const whole = pRoundAlone[row * vDim + c] - exact;
      largest.add(element, error);
      others.add(element, whole - error);
      const mended = outputs[beforeRounding][row * vDim + c] - error;
      unrounded.add(element, round(format, mended) - exact);
    }
  }

  return {
    addPiece: (piece: AttributedPiece): void => {
      const { largestWeights } = piece;
      if (largestWeights === null || pRound === undefined) return;
      const alone = piece.outputs[pRound];
      for (let row = 0; row < piece.rows; row++) addRow(piece, largestWeights, row, alone);
    },
    /** Null for a kernel that does not round its weights. */
    result: (): WeightRounding | null =>
      pRound === undefined
        ? null
        : {
            largestWeight: largest.measure(),
            otherWeights: others.measure(),
            largestUnrounded: unrounded.measure(),
          },
  };
}
