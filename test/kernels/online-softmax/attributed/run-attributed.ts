import {
  createAttributedForward,
  techniques,
  type AttributedTileResult,
  type EmulatedTechniques,
  type Fa4Configuration,
} from '../../../../kernels/index.js';
import type { Problem } from '../../../../src/problem/index.js';

export const everything: EmulatedTechniques = new Set(techniques);
export const nothing: EmulatedTechniques = new Set();

/** The whole outputs and row sums of each choice, and what the tiles say of their rows. */
export interface WholeRun {
  readonly outputs: readonly Float64Array[];
  readonly rowSums: readonly Float64Array[];
  readonly maxima: Float64Array;
  readonly lags: Float64Array;
  readonly largestKeys: Int32Array;
  readonly largestExponents: Float64Array;
}

/** Runs all tiles of a problem. */
export function runAttributed(
  problem: Problem,
  choices: readonly EmulatedTechniques[],
  overrides: Partial<Fa4Configuration> = {},
): WholeRun {
  const forward = createAttributedForward(problem, choices, overrides);
  const { batch, heads, queries, vDim } = forward.shape;
  const rows = batch * heads * queries;
  const whole = {
    outputs: choices.map(() => new Float64Array(rows * vDim)),
    rowSums: choices.map(() => new Float64Array(rows)),
    maxima: new Float64Array(rows),
    lags: new Float64Array(rows),
    largestKeys: new Int32Array(rows),
    largestExponents: new Float64Array(rows),
  };
  for (let tile = 0; tile < forward.tiles; tile++) {
    const { first } = forward.rowsOf(tile);
    const result: AttributedTileResult = forward.runTile(tile);
    result.outputs.forEach((out, run) => whole.outputs[run].set(out, first * vDim));
    result.rowSums.forEach((sums, run) => whole.rowSums[run].set(sums, first));
    for (const name of ['maxima', 'lags', 'largestKeys', 'largestExponents'] as const)
      whole[name].set(result[name], first);
  }
  return whole;
}
