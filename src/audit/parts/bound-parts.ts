import { attentionOracle, type Accuracy, type AttentionReference } from '../../../oracles/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../problem/index.js';
import { forEachRowsBound, type KernelArithmetic, type RowsBound } from '../bounds/index.js';
import { measureByCrew } from '../conduct/measure.js';
import type { Crew, MeasuringTerms, StageProgress, Stages } from '../conduct/stage.js';
import type { RowsBoundVisitor } from '../element-bounds.js';
import { headRows } from './head-rows.js';
import { copiedBound } from './measure-apart.js';
import { firstRowOf, partShape, planParts, type Part } from './part-plan.js';
import { visitInWhole } from './part-tensors.js';
import { emptyReference, fillReference, referenceRows } from './reference-rows.js';

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

/** The types of the measurements of bounds. */
interface BoundMeasurements extends MeasuringTerms {
  readonly request: BoundPartRequest;
  readonly answer: BoundPartAnswer;
  readonly data: BoundSettings;
  readonly measured: undefined;
}

/** The exact values of all parts, and then their bounds. */
function* boundStages(
  problem: Problem,
  settings: BoundSettings,
  { partEffort, onReference }: BoundOptions,
): Stages<BoundMeasurements> {
  const { accuracy, arithmetic } = settings;
  const { maximum } = arithmetic;
  const isShared = maximum.kind === 'unknown' && maximum.shared === 'group';
  const shape = problemShape(problem);
  const parts = planParts(shape, !isShared, partEffort);
  const all = emptyReference(shape);
  const common = { data: settings, isDivided: parts.length > 1 };
  const firstOf = (index: number) => firstRowOf(parts[index], shape);
  yield [
    {
      ...common,
      name: 'oracle',
      requests: parts.map((part) => ({ part, reference: null })),
      measure: ({ part }, progress) => ({
        reference: attentionOracle(partProblem(problem, shape, part), { accuracy, progress }),
        bounds: [],
      }),
      settle: ({ reference }, index) => fillReference(all, reference!, firstOf(index)),
    },
  ];
  const visit = onReference(all);
  yield [
    {
      ...common,
      name: 'bounds',
      requests: parts.map((part, index) => ({
        part,
        reference: referenceRows(all, partShape(shape, part), firstOf(index)),
      })),
      measure: ({ part, reference }, progress) => {
        const ofPart = visitInWhole(visit, firstRowOf(part, shape));
        const own = partProblem(problem, shape, part);
        forEachRowsBound(own, reference!, arithmetic, ofPart, { progress });
        return { reference: null, bounds: [] };
      },
      settle: ({ bounds }, index) => {
        const ofPart = visitInWhole(visit, firstOf(index));
        for (const bound of bounds) ofPart(bound);
      },
    },
  ];
  return undefined;
}

/**
 * The exact values of a problem, and then the bounds of a kernel's arithmetic, part by part: the visitor sees the
 * same whoever measures the parts. A problem of one part is measured here.
 */
export async function boundInParts(
  problem: Problem,
  settings: BoundSettings,
  options: BoundOptions,
  crew: Crew<BoundMeasurements>,
): Promise<void> {
  await measureByCrew(boundStages(problem, settings, options), crew, options.progress);
}
