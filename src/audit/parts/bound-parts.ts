import { attentionOracle, type Accuracy, type AttentionReference } from '../../../oracles/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../problem/index.js';
import { forEachRowsBound, type KernelArithmetic, type RowsBound } from '../bounds/index.js';
import type { RowsBoundVisitor } from '../element-bounds.js';
import { headRows } from './head-rows.js';
import { copiedBound } from './measure-apart.js';
import { firstRowOf, partShape, planParts, type Part } from './part-plan.js';
import { visitInWhole } from './part-tensors.js';
import { emptyReference, fillReference, referenceRows } from './reference-rows.js';
import type { PartRunner, StageProgress } from './run-stages.js';

/** The exact values of a part, or, where they are known, the bounds of its elements. */
export interface BoundPartRequest {
  readonly part: Part;
  /** The exact values of the part; null where they are asked for. */
  readonly reference: AttentionReference | null;
}

/** The answer of another thread to a request: one of the two. */
export interface BoundPartAnswer {
  readonly reference: AttentionReference | null;
  /** The bounds as they were made, of the part's rows. */
  readonly bounds: readonly RowsBound[];
}

/** Settings by which all parts are measured: data that a thread may be sent. */
export interface BoundSettings {
  readonly accuracy: Accuracy;
  readonly arithmetic: KernelArithmetic;
}

/** Measures parts somewhere else, in threads perhaps. To be closed. */
export type BoundPartRunner = PartRunner<BoundPartRequest, BoundPartAnswer> & {
  readonly close: () => Promise<void>;
};

/** A part of a problem that is in memory, which it shares. */
function partProblem(problem: Problem, shape: ProblemShape, part: Part): Problem {
  const { head, firstRow, rows } = part;
  return head === null ? problem : headRows(problem, shape, head, firstRow, rows);
}

/** Measures a request for another thread. */
export function measureBoundPart(
  { part, reference }: BoundPartRequest,
  problem: Problem,
  { accuracy, arithmetic }: BoundSettings,
): BoundPartAnswer {
  const ofPart = partProblem(problem, problemShape(problem), part);
  if (reference === null) return { reference: attentionOracle(ofPart, { accuracy }), bounds: [] };
  const bounds: RowsBound[] = [];
  forEachRowsBound(ofPart, reference, arithmetic, (bound) => bounds.push(copiedBound(bound)));
  return { reference: null, bounds };
}

/** Callbacks, and the division of a problem. */
export interface BoundOptions {
  /** Multiply-adds that are measured at once; default: those of about a second. */
  readonly partEffort?: number | undefined;
  /** Called for the stages `oracle` and `bounds`. */
  readonly progress: StageProgress;
  /** Called once with the exact values; returns the visitor of the bounds of all rows, in their order. */
  readonly onReference: (reference: AttentionReference) => RowsBoundVisitor;
}

/** Measures all parts in this thread. */
function boundHere(
  problem: Problem,
  parts: readonly Part[],
  { accuracy, arithmetic }: BoundSettings,
  { progress, onReference }: BoundOptions,
): void {
  const shape = problemShape(problem);
  const all = emptyReference(shape);
  const share = (stage: string, index: number) => (done: number) =>
    progress(stage, (index + done) / parts.length);
  parts.forEach((part, index) => {
    const ofPart = partProblem(problem, shape, part);
    const settings = { accuracy, progress: share('oracle', index) };
    fillReference(all, attentionOracle(ofPart, settings), firstRowOf(part, shape));
  });
  const visit = onReference(all);
  parts.forEach((part, index) => {
    const first = firstRowOf(part, shape);
    forEachRowsBound(
      partProblem(problem, shape, part),
      referenceRows(all, partShape(shape, part), first),
      arithmetic,
      visitInWhole(visit, first),
      { progress: share('bounds', index) },
    );
  });
}

/** Measures all parts by a runner. */
async function boundBy(
  runner: BoundPartRunner,
  shape: ProblemShape,
  parts: readonly Part[],
  { progress, onReference }: BoundOptions,
): Promise<void> {
  const all = emptyReference(shape);
  const share = (stage: string) => (count: number) => progress(stage, count / parts.length);
  await runner.run(
    parts.map((part) => ({ part, reference: null })),
    ({ reference }, index) => fillReference(all, reference!, firstRowOf(parts[index], shape)),
    share('oracle'),
  );
  const visit = onReference(all);
  await runner.run(
    parts.map((part) => {
      const first = firstRowOf(part, shape);
      return { part, reference: referenceRows(all, partShape(shape, part), first) };
    }),
    ({ bounds }, index) => {
      const ofPart = visitInWhole(visit, firstRowOf(parts[index], shape));
      for (const bound of bounds) ofPart(bound);
    },
    share('bounds'),
  );
}

/**
 * The exact values of a problem, and then the bounds of a kernel's arithmetic, part by part: the visitor sees the
 * same whoever measures the parts. A problem of one part is measured here.
 * @param start starts a runner for the parts; null where this thread is to measure them
 */
export async function boundInParts(
  problem: Problem,
  settings: BoundSettings,
  options: BoundOptions,
  start: (parts: number) => BoundPartRunner | null,
): Promise<void> {
  const { maximum } = settings.arithmetic;
  const isShared = maximum.kind === 'unknown' && maximum.shared === 'group';
  const shape = problemShape(problem);
  const parts = planParts(shape, !isShared, options.partEffort);
  const runner = parts.length === 1 ? null : start(parts.length);
  if (runner === null) return boundHere(problem, parts, settings, options);
  try {
    await boundBy(runner, shape, parts, options);
  } finally {
    await runner.close();
  }
}
