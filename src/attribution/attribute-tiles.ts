import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import type { Problem } from '../problem/index.js';
import { attributedKernel, type KernelChoice } from './kernel-choice.js';
import { planSingleRuns } from './run-plan.js';
import { tileErrors, type TileErrors } from './tile-errors.js';

/** The kernel, what is known of the problem already, and whom to tell how far it is. */
export interface AttributedTilesOptions extends KernelChoice {
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference;
  /** Called with how many tiles are done and how many there are. */
  readonly progress?: (done: number, total: number) => void;
}

/**
 * The errors of every technique alone, and of all together, element by element: what bounds of
 * techniques can be checked against. Rows are visited in order, some at a time; what was given to the
 * visitor is its own to keep.
 *
 * @throws RequestError as `attributeError`
 */
export function attributeTiles(
  problem: Problem,
  options: AttributedTilesOptions,
  visit: (tile: TileErrors) => void,
): void {
  const kernel = attributedKernel(problem, options);
  const plan = planSingleRuns(kernel.techniques);
  const reference = options.reference ?? attentionOracle(problem);
  const run = kernel.prepareRuns(plan.choices);
  for (let piece = 0; piece < kernel.pieces; piece++) {
    visit(tileErrors(run(piece), plan, reference));
    options.progress?.(piece + 1, kernel.pieces);
  }
}
