import {
  levels,
  type AttentionReference,
  type Progress,
  type WorkingMemories,
} from '../../oracles/index.js';
import type { ByQuantity, Problem, Quantity } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { numberUnits } from './structure/survey-rows.js';
import {
  combinations,
  type CombinedBounds,
  createCombinedBounds,
  forEachRowsBound,
  internalBound,
  type KernelArithmetic,
  type KernelBound,
  outputRounding,
  type RowsBound,
} from './bounds/index.js';

/** Called with the bounds of the next rows. */
export type RowsBoundVisitor = (bound: RowsBound) => void;

/** The bounds of a whole problem, without the parts of the techniques. */
export interface ElementBounds {
  /** Bounds of every element of each quantity; those of a number (the LSE, natural logarithms) are before it is stored. */
  readonly quantities: ByQuantity<CombinedBounds>;
  /** [batch, heads, queries]: rows of one number may err alike, others err independently. */
  readonly unit: Int32Array;
}

/**
 * The bounds of every element of a quantity.
 * @throws RequestError where there are none for it
 */
export function boundsOf({ quantities }: ElementBounds, { name, prose }: Quantity): CombinedBounds {
  const found = quantities[name];
  if (found === undefined) throw new RequestError(`${prose} has no bounds`);
  return found;
}

/** The bounds of a problem that may be a part of another. */
export interface MeasuredBounds {
  readonly quantities: Pick<ByQuantity<CombinedBounds>, 'out' | 'lse'>;
  /** [batch, heads, queries]: 1 for a row most of whose weights round alike. */
  readonly clustered: Uint8Array;
}

/** A visitor of the bounds while they are made, and the memories that their loops work in. */
interface MeasureBoundsOptions {
  readonly visit?: RowsBoundVisitor;
  readonly progress?: Progress;
  readonly memories?: WorkingMemories | undefined;
}

/**
 * Computes and keeps the bounds of every element and row: see `forEachRowsBound`. It does not cover rows
 * whose inputs hold infinities or NaNs: these take the bound from `premises`, with the magnitude and |O| for
 * Σ w|v − O|, and no part of it is random.
 */
export function measureBounds(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  premises: KernelBound,
  { visit, progress, memories }: MeasureBoundsOptions = {},
): MeasuredBounds {
  const out = createCombinedBounds(reference.quantities.out.values.length);
  const lse = createCombinedBounds(reference.quantities.lse.values.length);
  const clustered = new Uint8Array(reference.quantities.lse.values.length);
  const { vDim } = reference.shape;
  forEachRowsBound(
    problem,
    reference,
    arithmetic,
    (bound) => {
      for (const name of combinations) {
        out[name].set(
          bound.quantities.out[name].subarray(0, bound.rows * vDim),
          bound.firstRow * vDim,
        );
        lse[name].set(bound.quantities.lse[name].subarray(0, bound.rows), bound.firstRow);
      }
      clustered.set(bound.clustered.subarray(0, bound.rows), bound.firstRow);
      visit?.(bound);
    },
    progress === undefined ? { memories } : { memories, progress },
  );
  reference.level.forEach((level, row) => {
    if (levels[level] !== 'special') return;
    const ofRow = premises.row(row);
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      const exact = reference.quantities.out.values[i];
      const magnitude = reference.quantities.out.magnitude[i];
      const inner = internalBound(ofRow, exact, magnitude, magnitude + Math.abs(exact));
      const half = outputRounding(arithmetic.outputFormat, exact, inner, arithmetic.outputRounding);
      out.total[i] = out.systematic[i] = inner + half + reference.quantities.out.radius[i];
      out.known[i] = out.deviation[i] = 0;
    }
    lse.total[row] = lse.systematic[row] = ofRow.lse;
    lse.known[row] = lse.deviation[row] = 0;
  });
  return { quantities: { out, lse }, clustered };
}

/** The bounds of a whole problem that is measured at once: see `measureBounds`. */
export function elementBounds(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  premises: KernelBound,
): ElementBounds {
  const { quantities, clustered } = measureBounds(problem, reference, arithmetic, premises);
  const { unit } = numberUnits(reference, clustered, arithmetic.weightFormat);
  return { quantities, unit };
}
