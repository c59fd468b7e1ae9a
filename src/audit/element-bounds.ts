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
  readonly quantities: ByQuantity<CombinedBounds>;
  /** [batch, heads, queries]: 1 for a row most of whose weights round alike. */
  readonly clustered: Uint8Array;
}

/** Bounds of all quantities of a reference, all 0. */
export function createQuantityBounds({
  quantities,
}: AttentionReference): ByQuantity<CombinedBounds> {
  const entries = Object.entries(quantities).flatMap(([name, quantity]) =>
    quantity === undefined ? [] : [[name, createCombinedBounds(quantity.values.length)] as const],
  );
  return Object.fromEntries(entries) as unknown as ByQuantity<CombinedBounds>;
}

/**
 * Writes the bounds of `count` rows to where the rows are, from row `first` of `rows` on. Quantities without bounds in
 * `part` are taken from `all`, since they have none.
 */
export function keepBounds(
  all: ByQuantity<CombinedBounds>,
  part: ByQuantity<CombinedBounds>,
  { rows, first, count }: { readonly rows: number; readonly first: number; readonly count: number },
): void {
  for (const [name, whole] of Object.entries(all as Record<string, CombinedBounds | undefined>)) {
    const ofPart = part[name];
    if (whole === undefined) continue;
    if (ofPart === undefined) {
      Reflect.deleteProperty(all, name);
      continue;
    }
    const dim = rows === 0 ? 0 : whole.total.length / rows;
    for (const kind of combinations)
      whole[kind].set(ofPart[kind].subarray(0, count * dim), first * dim);
  }
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
  const rows = reference.quantities.lse.values.length;
  const quantities = createQuantityBounds(reference);
  const { out, lse } = quantities;
  const clustered = new Uint8Array(rows);
  const { vDim } = reference.shape;
  forEachRowsBound(
    problem,
    reference,
    arithmetic,
    (bound) => {
      keepBounds(quantities, bound.quantities, { rows, first: bound.firstRow, count: bound.rows });
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
  return { quantities, clustered };
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
