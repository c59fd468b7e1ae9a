import type { AttributedPiece } from '../../kernels/index.js';
import type { AttentionReference } from '../../oracles/index.js';
import type { SinglePlan } from './run-plan.js';

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
export function lseError(lse: number, exact: number): number {
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
