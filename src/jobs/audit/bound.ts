import {
  createTechniqueTable,
  type TechniqueTable,
  type TechniqueTableMeter,
} from '../../attribution/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  boundInParts,
  chooseRows,
  modelArithmetic,
  resolvePremises,
  sampledProblem,
  type KernelArithmetic,
  type RowsBound,
  type RowSample,
} from '../../audit/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import {
  createBoundReport,
  type BoundProvenance,
  type BoundReport,
} from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { chosenRows, type RowsRequest } from './audit-settings.js';
import { declaredPremises, modelNamed, type ArithmeticRequest } from './declared-arithmetic.js';
import { secondsSince } from './document-head.js';
import { shareInputs } from './part-source.js';
import type { BoundThreadData } from './thread-work.js';
import type { StartThreads } from './threads.js';

/** A problem, and the arithmetic of a kernel. */
export interface BoundRequest extends ArithmeticRequest {
  readonly problem: Problem;
  /** Whether settings are given, which only models have. */
  readonly hasSettings: boolean;
  /** The output's format; null for the model's, or that of Q. */
  readonly outputFormat: FormatName | null;
  /** The origin of the problem, for the report. */
  readonly origin: Omit<BoundProvenance, 'seconds' | 'sample'>;
  /** The rows to bound; default: all, or those of a sample where all would take too long. */
  readonly rows?: RowsRequest | undefined;
  /** Number of threads that bound it, for problems that are worth it; default 1: this one. The report does not depend on it. */
  readonly threads?: number | undefined;
  /** Whether to keep the bound of every element, too; default false. */
  readonly keepsElements?: boolean | undefined;
  /** See `AuditOptions.partEffort`. */
  readonly partEffort?: number | undefined;
  /** `performance.now()` when the work began; default: now. */
  readonly start?: number | undefined;
}

/** Values and bounds for each element of the output, and for each row's LSE (natural logarithms), in canonical order. */
export interface KeptBounds {
  readonly out: Float64Array;
  readonly lse: Float64Array;
  /**
   * The most by which a correct kernel may differ, including the oracle's radius; NaN for rows with
   * infinities or NaNs among their inputs.
   */
  readonly outBound: Float64Array;
  readonly lseBound: Float64Array;
}

/** Collects bounds row by row. */
function keepBounds({ quantities: { out, lse }, shape }: AttentionReference) {
  const kept: KeptBounds = {
    out: out.values,
    lse: lse.values,
    outBound: new Float64Array(out.values.length).fill(NaN),
    lseBound: new Float64Array(lse.values.length).fill(NaN),
  };
  const visit = ({ quantities, rows, firstRow }: RowsBound): void => {
    const { vDim } = shape;
    kept.outBound.set(quantities.out.total.subarray(0, rows * vDim), firstRow * vDim);
    kept.lseBound.set(quantities.lse.total.subarray(0, rows), firstRow);
  };
  return { kept, visit };
}

/** The report of bounds, and the table behind it. */
export interface BoundResult {
  /** The bounded problem, or the sampled rows of it. */
  readonly problem: Problem;
  readonly report: BoundReport;
  readonly table: TechniqueTable;
  /** The oracle's results, and the bounds; null if they are not kept. */
  readonly elements: KeptBounds | null;
}

/** @param bounded the rows to bound, which determine the numbers of any kernel; a model is made for the whole problem */
function arithmeticOf(request: BoundRequest, bounded: Problem): KernelArithmetic {
  const { problem, outputFormat, kernel, as, models } = request;
  const premises = declaredPremises(request);
  if (premises !== null) {
    if (request.hasSettings)
      throw new RequestError('--set changes a kernel model; name one with --kernel');
    const output = outputFormat ?? problem.q.format;
    return anyKernelArithmetic(bounded, output, resolvePremises(bounded, output, premises));
  }
  const model = modelNamed((kernel ?? as)!, models);
  const own = modelArithmetic(model, problem, request.settings());
  return outputFormat === null ? own : { ...own, outputFormat };
}

/** The rows to bound; null for all. */
function sampleOf({ problem, rows }: BoundRequest): RowSample | null {
  const chosen = chosenRows(problem, rows);
  return chosen === null ? null : chooseRows(problem, problemShape(problem), chosen);
}

/**
 * The most that each technique of a kernel may move the output, without running anything.
 * @param progress called with the share of the stages `oracle` and `bounds`
 * @throws RequestError for an unknown kernel, or one that does not take the problem, and for fewer rows than heads
 */
export async function boundKernel(
  request: BoundRequest,
  progress: (stage: string, done: number) => void,
  startThreads: StartThreads,
): Promise<BoundResult> {
  const { origin, threads = 1, partEffort, start = performance.now() } = request;
  const sample = sampleOf(request);
  const { problem: whole } = request;
  const problem = sample === null ? whole : sampledProblem(whole, problemShape(whole), sample);
  const arithmetic = arithmeticOf(request, problem);
  const settings = { accuracy: auditAccuracy(arithmetic.outputFormat), arithmetic };
  const known: { meter?: TechniqueTableMeter; kept?: KeptBounds } = {};
  await boundInParts(
    problem,
    settings,
    {
      partEffort,
      progress,
      onReference: (reference) => {
        known.meter = createTechniqueTable(reference, arithmetic.description);
        if (request.keepsElements !== true) return known.meter.visit;
        const [{ kept, visit }, { visit: tell }] = [keepBounds(reference), known.meter];
        known.kept = kept;
        return (bound) => {
          visit(bound);
          tell(bound);
        };
      },
    },
    {
      start: (_, parts) =>
        threads === 1
          ? null
          : startThreads(Math.min(threads, parts), 'boundRequest', {
              problem: shareInputs(problem),
              settings,
            } satisfies BoundThreadData),
    },
  );
  const table = known.meter!.table();
  return {
    problem,
    report: createBoundReport(problem, table, {
      ...origin,
      sample,
      seconds: secondsSince(start),
    }),
    table,
    elements: known.kept ?? null,
  };
}
