import { mergeClasses, noClasses, type ResultClasses } from './result-classes.js';
import { cutCells, slicesOf, type Cell, type Domain, type InputRange } from './cells.js';
import { emptyEnvelope, widenEnvelope, type Envelope } from './envelope.js';
import type { Crossing, ErrorPlan, SliceErrors } from './error-plan.js';
import { addErrors, addRecord, mergeBreaks, noBreaks, noErrors, type Errors } from './errors.js';
import { spacingExponentOf } from './float32-order.js';
import { sweep, type SweepOptions } from './sweep.js';

/** Results of one function in one cell. */
export interface FunctionCell {
  classes: ResultClasses;
  /** Errors by measure. */
  readonly errors: readonly Errors[];
  readonly crossings: Crossing[];
}

interface CellErrors {
  readonly cell: Cell;
  /** Results of the functions, in the order of the plan. */
  readonly functions: readonly FunctionCell[];
}

/** Results of the functions of a plan over all inputs. */
export interface ErrorSweep {
  readonly plan: ErrorPlan;
  readonly cells: readonly CellErrors[];
  /** Envelopes by function, then by panel. */
  readonly envelopes: readonly (readonly Envelope[])[];
}

const noCrossing: Crossing = { fromBaseline: noBreaks, toBaseline: noBreaks };

/** An empty sweep, to which slices are added. */
export function emptySweep(plan: ErrorPlan, cells: readonly Cell[]): ErrorSweep {
  return {
    plan,
    cells: cells.map((cell) => ({
      cell,
      functions: plan.candidates.map(() => ({
        classes: noClasses,
        errors: plan.measures.map(noErrors),
        crossings: plan.measures.map(() => noCrossing),
      })),
    })),
    envelopes: plan.candidates.map(() =>
      plan.panels.map((panel) => emptyEnvelope(panel.length - 1)),
    ),
  };
}

/** Adds the results of a slice; the order of slices does not matter. */
export function addSlice(target: ErrorSweep, { slice, measured, candidates }: SliceErrors): void {
  const inputs = slice.last - slice.first + 1;
  const spacing = spacingExponentOf(slice.first);
  const { functions } = target.cells[slice.cell];
  for (const [c, from] of candidates.entries()) {
    const into = functions[c];
    into.classes = mergeClasses(into.classes, from.classes);
    from.errors.forEach((record, m) =>
      addRecord(into.errors[m], record, spacing, inputs, measured[m]),
    );
    from.crossings.forEach(({ fromBaseline, toBaseline }, m) => {
      into.crossings[m] = {
        fromBaseline: mergeBreaks(into.crossings[m].fromBaseline, fromBaseline),
        toBaseline: mergeBreaks(into.crossings[m].toBaseline, toBaseline),
      };
    });
    from.envelopes.forEach((envelope, p) => {
      if (envelope !== null) widenEnvelope(target.envelopes[c][p], envelope);
    });
  }
}

/** A plan before its range is known. */
type ErrorPlanDraft = Omit<ErrorPlan, 'kind' | 'first' | 'last'>;

/**
 * Measures the errors of a plan's functions at every fp32 input of the cells within the range.
 * @throws RequestError for a range without a measured input
 */
export async function sweepErrors(
  draft: ErrorPlanDraft,
  allCells: readonly Cell[],
  range: InputRange,
  options: SweepOptions,
): Promise<ErrorSweep> {
  const cells = cutCells(allCells, range);
  const first = Math.min(...cells.map((cell) => cell.first));
  const last = Math.max(...cells.map((cell) => cell.last));
  const plan: ErrorPlan = { kind: 'errors', ...draft, first, last };
  const result = emptySweep(plan, cells);
  await sweep(plan, slicesOf(cells), options, (slice) => addSlice(result, slice));
  return result;
}

/** The errors of one function in one measure over the measured cells of a domain. */
export function domainErrors(
  { cells }: ErrorSweep,
  domain: Domain,
  candidate: number,
  measure: number,
): Errors {
  const errors = noErrors();
  for (const { cell, functions } of cells)
    if (cell.isMeasured && domain.has(cell))
      addErrors(errors, functions[candidate].errors[measure]);
  return errors;
}

/** The crossings of one function in one measure over the measured cells of a domain. */
export function domainCrossing(
  { cells }: ErrorSweep,
  domain: Domain,
  candidate: number,
  measure: number,
): Crossing {
  return cells
    .filter(({ cell }) => cell.isMeasured && domain.has(cell))
    .map(({ functions }) => functions[candidate].crossings[measure])
    .reduce(
      (a, b) => ({
        fromBaseline: mergeBreaks(a.fromBaseline, b.fromBaseline),
        toBaseline: mergeBreaks(a.toBaseline, b.toBaseline),
      }),
      noCrossing,
    );
}
