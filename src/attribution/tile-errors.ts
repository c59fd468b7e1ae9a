import type { AttributedPiece } from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { planSingleRuns, type SinglePlan } from './run-plan.js';
import type { Problem } from '../problem/index.js';
import { attributedKernel, type KernelChoice } from './kernel-choice.js';

/** Errors of some rows against the oracle, with their signs; NaN where one of both is not finite. */
export interface RowErrors {
  /** [rows × vDim] */
  readonly out: Float64Array;
  /** [rows], natural logarithm; 0 where both are −∞. */
  readonly lse: Float64Array;
}

/** The errors of some rows, by technique. */
export interface TileErrors {
  /** Where the rows lie among all rows [batch · heads · queries]. */
  readonly firstRow: number;
  readonly rows: number;
  /** With every technique emulated: the kernel's error. */
  readonly all: RowErrors;
  /** With none: what the attribution errs by itself, part of all the others too. */
  readonly none: RowErrors;
  /** With one technique emulated and all others exact, by its name. */
  readonly alone: Readonly<Record<string, RowErrors>>;
}

/** An LSE's error; −∞ on both sides is none. */
function lseError(lse: number, exact: number): number {
  if (lse === exact) return 0;
  return Number.isFinite(lse) && Number.isFinite(exact) ? lse - exact : NaN;
}

/** The errors of a piece. */
export function tileErrors(
  { firstRow, rows, outputs, lse }: AttributedPiece,
  plan: SinglePlan,
  reference: AttentionReference,
): TileErrors {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  const first = firstRow * reference.shape.vDim;
  const ofRun = (run: number): RowErrors => ({
    out: outputs[run].map((x, i) => {
      const error = x - exactOut.values[first + i];
      return Number.isFinite(error) ? error : NaN;
    }),
    lse: lse[run].map((x, row) => lseError(x, exactLse.values[firstRow + row])),
  });
  return {
    firstRow,
    rows,
    all: ofRun(plan.all),
    none: ofRun(plan.none),
    alone: Object.fromEntries(Object.entries(plan.alone).map(([name, run]) => [name, ofRun(run)])),
  };
}

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
