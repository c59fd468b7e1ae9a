import type { AttributedKernel, KernelModel } from '../../../kernels/index.js';
import type { AttentionReference, WorkingMemories } from '../../../oracles/index.js';
import {
  attributedKernel,
  createTechniqueTable,
  identifyKernel,
  type Identification,
  type TechniqueTableMeter,
} from '../../attribution/index.js';
import {
  anyKernelArithmetic,
  auditOutputsApart,
  planThinning,
  quantisedInputs,
  resolvePremises,
  sampleRows,
  type Audit,
  type AuditOptions,
  type KernelArithmetic,
  multiplyAddsOf,
  type KernelOutputs,
  type PartSettings,
  type RowSample,
  type SampledRows,
} from '../../audit/index.js';
import type { TensorFiles } from '../../io/tensors/index.js';
import { problemShape, type Problem } from '../../problem/index.js';
import { createAuditReport, type JudgedReport, type Provenance } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import { chosenRows, type RowsRequest } from './audit-settings.js';
import type { DeclaredArithmetic } from './declared-arithmetic.js';
import { secondsSince } from './document-head.js';
import { readShared, shareProblem } from './part-source.js';
import type { SampledFile } from './sampled-file.js';
import type { PartThreadData } from './thread-work.js';
import type { HelperThread, StartThreads } from './threads.js';

/** The most multiply-adds of a problem that is measured sooner than sent to a helper. */
const leastForHelper = 2 ** 19;

/** The most multiply-adds spent on measuring techniques: some seconds. */
const measuringEffort = 4e9;

/** A model whose techniques are measured, with its settings as text, by key. */
interface MeasuredModel {
  readonly model: KernelModel | string;
  readonly settings: ReadonlyMap<string, string>;
}

/** Outputs to judge, with the settings for judging them. */
export interface AuditRequest {
  readonly problem: Problem;
  readonly outputs: KernelOutputs;
  readonly declared: DeclaredArithmetic;
  /** See `AuditOptions.strictPremises`. */
  readonly strictPremises?: boolean | undefined;
  /** The probability that the statistical tests fail a correct kernel. */
  readonly falseAlarmRate: number;
  /** Whether the report has the table of techniques. */
  readonly techniques: boolean;
  /** The model in which each technique is measured, beside the techniques' bounds; null for none. */
  readonly measured: MeasuredModel | null;
  /** Whether to identify the kernel that produced the output. */
  readonly identify: boolean;
  /** The rows to judge; default: all, or those of a sample where all would take too long. */
  readonly rows?: RowsRequest | undefined;
  /** The rows to judge, if the keys and values of the problem are not in memory; `rows` is ignored then. */
  readonly sampledFile?: SampledFile | undefined;
  /** The available kernel models; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** The origin of the inputs, for the report. */
  readonly origin: Omit<Provenance, 'seconds'>;
  /** Number of threads that measure it, for problems that are worth it; default 1: this one. The report does not depend on it. */
  readonly threads?: number | undefined;
  /** See `AuditOptions.partEffort`. */
  readonly partEffort?: number | undefined;
  /** `performance.now()` when the work began; default: now. */
  readonly start?: number | undefined;
}

/** Platform services that an audit uses. */
export interface AuditMeans {
  readonly startThreads: StartThreads;
  /** A thread that is already running, for problems that are not divided; null for none. */
  readonly helper?: HelperThread | null;
  /** See `AuditOptions.memories`. */
  readonly memories?: WorkingMemories | undefined;
  /** Files to read keys and values from when they are not in memory. */
  readonly files: TensorFiles;
}

/** Callbacks of an audit in progress. */
export interface AuditCallbacks {
  /**
   * @param stage `oracle`, `structure`, `bounds` or `identification`
   * @param done share of it
   */
  readonly progress?: (stage: string, done: number) => void;
  /** Takes the elements that are judged; see `AuditOptions.onElements`. */
  readonly onElements?: AuditOptions['onElements'];
}

/** An audit's report, with the data that accompanies it. */
export interface AuditResult {
  /** The judged problem, or the sampled rows of it. */
  readonly problem: Problem;
  readonly outputs: KernelOutputs;
  readonly audit: Audit;
  readonly report: JudgedReport;
  readonly origin: Provenance;
  readonly reference: AttentionReference;
  /** The kernel that the output looks like; null if that was not asked. */
  readonly identification: Identification | null;
}

/** The emulated kernel with switchable techniques; null if it has none in these settings. */
function measurableKernel(
  problem: Problem,
  measured: MeasuredModel | null,
): AttributedKernel | null {
  if (measured === null) return null;
  const { model, settings } = measured;
  try {
    return attributedKernel(problem, { kernel: model, settings });
  } catch (error) {
    // The kernel ran, so the request is sound: it is its techniques that cannot be told apart.
    if (error instanceof RequestError) return null;
    throw error;
  }
}

function techniqueMeter(
  { problem, techniques, measured }: AuditRequest,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
): TechniqueTableMeter | null {
  if (!techniques) return null;
  const kernel = measurableKernel(problem, measured);
  return createTechniqueTable(reference, arithmetic.description, {
    ...(kernel === null ? {} : { kernel }),
    effort: measuringEffort,
  });
}

/** The rows to judge; null for all. */
function sampled({ problem, outputs, rows, sampledFile }: AuditRequest): SampledRows | null {
  if (sampledFile !== undefined) return sampledFile.sampled;
  const chosen = chosenRows(problem, rows);
  return chosen === null ? null : sampleRows(problem, outputs, chosen);
}

/** A sample, with the number of its rows that enter the statistics. */
function sampleOf({ sample }: SampledRows, { statistics }: Audit): RowSample {
  return statistics === undefined ? sample : { ...sample, statistics };
}

/**
 * Judges outputs of a problem against the oracle.
 * @throws RequestError for tensors that do not fit the problem, and for `identify` on a
 * sample of rows
 */
export async function auditKernel(
  request: AuditRequest,
  callbacks: AuditCallbacks,
  { startThreads, helper = null, memories, files }: AuditMeans,
): Promise<AuditResult> {
  const { declared, falseAlarmRate, models } = request;
  const { start = performance.now(), threads = 1, partEffort } = request;
  const sample = sampled(request);
  const keys = request.sampledFile?.keys ?? null;
  const { outputs } = sample ?? request;
  const problem = quantisedInputs((sample ?? request).problem, declared.premises);
  if (sample !== null && request.identify)
    throw new RequestError(
      '--identify compares whole outputs, and a sample of rows is judged; leave it out, or judge all rows with --rows all',
    );
  const { progress = () => undefined, onElements } = callbacks;
  const thinning = sample === null ? null : planThinning(problemShape(problem), sample.sample);
  const { arithmetic: own, premises } = declared;
  const { format } = outputs.out;
  const arithmetic =
    own ?? anyKernelArithmetic(problem, format, resolvePremises(problem, format, premises));
  // What threads measure parts by.
  const dataOf = (settings: PartSettings): PartThreadData => ({
    source: shareProblem(problem, outputs, keys),
    settings,
    withBounds: request.techniques,
  });
  const isHelped =
    threads > 1 &&
    keys === null &&
    multiplyAddsOf(problem, problemShape(problem)) >= leastForHelper;
  const known: { reference?: AttentionReference; meter?: TechniqueTableMeter | null } = {};
  const audit = await auditOutputsApart(
    problem,
    outputs,
    {
      falseAlarmRate,
      progress,
      memories,
      ...(own === null ? {} : { arithmetic: own }),
      premises,
      strictPremises: request.strictPremises ?? false,
      thinning,
      ...(request.techniques ? { onBounds: (bound) => known.meter?.visit(bound) } : {}),
      onReference: (reference) => {
        known.reference = reference;
        known.meter = techniqueMeter({ ...request, problem }, reference, arithmetic);
      },
      ...(onElements === undefined ? {} : { onElements }),
      ...(partEffort === undefined ? {} : { partEffort }),
    },
    {
      start: (settings, parts) =>
        threads === 1 && keys === null
          ? null
          : startThreads(Math.min(threads, parts), 'measureRequest', dataOf(settings)),
      beside: (settings) => (isHelped ? (helper?.runner(dataOf(settings)) ?? null) : null),
    },
    keys === null
      ? null
      : {
          readHead: (head) => {
            const { queries } = problemShape(problem);
            const read = readShared(shareProblem(problem, outputs, keys), files);
            return read({ head, firstRow: 0, rows: queries });
          },
        },
  );
  const reference = known.reference!;
  const identification = request.identify
    ? identifyKernel(problem, outputs.out, {
        reference,
        ...(models === undefined ? {} : { models }),
        progress: (done, total) => progress('identification', done / total),
      })
    : null;
  const techniques = known.meter?.table() ?? null;
  const origin = {
    ...request.origin,
    sample: sample === null ? null : sampleOf(sample, audit),
    seconds: secondsSince(start),
  };
  const given = problem.quantisedFrom ?? problem;
  const report = createAuditReport(given, audit, origin, techniques);
  return { problem, outputs, audit, report, origin, reference, identification };
}
