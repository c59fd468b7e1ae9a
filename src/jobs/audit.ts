import type { AttributedKernel, KernelModel } from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import {
  attributedKernel,
  createTechniqueTable,
  identifyKernel,
  type Identification,
  type TechniqueTableMeter,
} from '../attribution/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  auditOutputs,
  resolvePremises,
  type Audit,
  type AuditOptions,
  type KernelArithmetic,
  type KernelOutputs,
} from '../audit/index.js';
import type { Problem } from '../problem/index.js';
import { createAuditReport, type AuditReport, type Provenance } from '../report/json/index.js';
import { RequestError } from '../request-error.js';
import type { DeclaredArithmetic } from './declared-arithmetic.js';
import { secondsSince } from './document-head.js';

/** The most multiply-adds that the measuring of techniques takes: some seconds. */
const measuringEffort = 4e9;

/** A model whose techniques are measured, with its settings as text, by key. */
export interface MeasuredModel {
  readonly model: KernelModel | string;
  readonly settings: ReadonlyMap<string, string>;
}

/** Outputs to judge, and how. */
export interface AuditRequest {
  readonly problem: Problem;
  readonly outputs: KernelOutputs;
  readonly declared: DeclaredArithmetic;
  /** The probability that the statistical tests fail a correct kernel. */
  readonly falseAlarmRate: number;
  /** Whether the report has the table of techniques. */
  readonly techniques: boolean;
  /** Beside the bounds of the techniques, what each of them was in this model; null for none. */
  readonly measured: MeasuredModel | null;
  /** Whether to say which kernel the output looks like. */
  readonly identify: boolean;
  /** The kernel models that there are; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** What the report says of where all of it came from. */
  readonly origin: Omit<Provenance, 'seconds'>;
  /** `performance.now()` when the work began; default: now. */
  readonly start?: number | undefined;
}

/** What is told while an audit goes on. */
export interface AuditCallbacks {
  /** @param stage `oracle`, `structure`, `bounds` or `identification` @param done the share of it */
  readonly progress?: (stage: string, done: number) => void;
  /** Takes the elements that are judged; see `AuditOptions.onElements`. */
  readonly onElements?: AuditOptions['onElements'];
}

/** An audit's report, with what goes beside it. */
export interface AuditResult {
  readonly audit: Audit;
  readonly report: AuditReport;
  readonly origin: Provenance;
  readonly reference: AttentionReference;
  /** Which kernel the output looks like; null when that was not asked. */
  readonly identification: Identification | null;
}

/** The emulated kernel with techniques to switch; null for one that has none in these settings. */
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

/**
 * Judges outputs of a problem against the oracle.
 * @throws RequestError for tensors that do not fit the problem
 */
export function auditKernel(request: AuditRequest, callbacks: AuditCallbacks = {}): AuditResult {
  const { problem, outputs, declared, falseAlarmRate, models } = request;
  const { start = performance.now() } = request;
  const { progress = () => undefined, onElements } = callbacks;
  const { arithmetic: own, premises } = declared;
  const { format } = outputs.out;
  const reference = attentionOracle(problem, {
    accuracy: auditAccuracy(format),
    progress: (done) => progress('oracle', done),
  });
  const arithmetic =
    own ?? anyKernelArithmetic(problem, format, resolvePremises(problem, format, premises));
  const meter = techniqueMeter(request, reference, arithmetic);
  const audit = auditOutputs(problem, outputs, {
    reference,
    falseAlarmRate,
    progress,
    ...(own === null ? {} : { arithmetic: own }),
    premises,
    ...(meter === null ? {} : { onBounds: meter.visit }),
    ...(onElements === undefined ? {} : { onElements }),
  });
  const identification = request.identify
    ? identifyKernel(problem, outputs.out, {
        reference,
        ...(models === undefined ? {} : { models }),
        progress: (done, total) => progress('identification', done / total),
      })
    : null;
  const techniques = meter?.table() ?? null;
  const origin = { ...request.origin, seconds: secondsSince(start) };
  const report = createAuditReport(problem, audit, origin, techniques);
  return { audit, report, origin, reference, identification };
}
