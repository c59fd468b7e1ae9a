import {
  attributedKernel,
  createTechniqueTable,
  identifyKernel,
  type Identification,
  type TechniqueTable,
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
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import type { AttributedKernel } from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import { gatherSketch, type AuditSketch } from '../report/text/index.js';
import { RequestError } from '../request-error.js';
import type { AuditCommandOptions } from './audit/options.js';
import { isModel, type DeclaredArithmetic } from './declared-arithmetic.js';
import { kernelSettings } from './options/kernel-settings.js';

/** The most multiply-adds that the measuring of techniques takes: some seconds. */
const measuringEffort = 4e9;

/** An audit, with what goes with it. */
export interface Judgement {
  readonly audit: Audit;
  /** Null when it was not wanted. */
  readonly techniques: TechniqueTable | null;
  /** Which kernel the output looks like; null when that was not asked. */
  readonly identification: Identification | null;
  /** What sparklines are drawn from; null when none are wanted. */
  readonly sketch: AuditSketch | null;
}

/**
 * The emulated kernel with techniques to switch; null for one that has none in these settings. One that
 * is only declared is measured for the page of plots.
 */
function measurableKernel(
  problem: Problem,
  { kernel, as, html, set }: AuditCommandOptions,
): AttributedKernel | null {
  const declaredModel = as !== undefined && isModel(as) ? as : undefined;
  const model = kernel ?? (html === undefined ? undefined : declaredModel);
  if (model === undefined) return null;
  try {
    return attributedKernel(problem, { kernel: model, settings: kernelSettings(set) });
  } catch (error) {
    // The kernel ran, so the request is sound: it is its techniques that cannot be told apart.
    if (error instanceof RequestError) return null;
    throw error;
  }
}

function techniqueMeter(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  options: AuditCommandOptions,
): TechniqueTableMeter | null {
  if (!options.techniques) return null;
  const kernel = measurableKernel(problem, options);
  return createTechniqueTable(reference, arithmetic.description, {
    ...(kernel === null ? {} : { kernel }),
    effort: measuringEffort,
  });
}

/**
 * Judges outputs as the options of `flashproof audit` want it.
 * @throws RequestError for tensors that do not fit the problem
 */
export function judge(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditCommandOptions,
  {
    declared,
    falseAlarmRate,
    progress,
    onElements,
    sketch: wantsSketch = false,
  }: {
    readonly declared: DeclaredArithmetic;
    readonly falseAlarmRate: number;
    readonly progress: (stage: string, done: number) => void;
    readonly onElements?: AuditOptions['onElements'];
    readonly sketch?: boolean;
  },
): Judgement {
  const { arithmetic: own, premises } = declared;
  const reference = attentionOracle(problem, {
    accuracy: auditAccuracy(outputs.out.format),
    progress: (done) => progress('oracle', done),
  });
  const { format } = outputs.out;
  const arithmetic =
    own ?? anyKernelArithmetic(problem, format, resolvePremises(problem, format, premises));
  const meter = techniqueMeter(problem, reference, arithmetic, options);
  const audit = auditOutputs(problem, outputs, {
    reference,
    falseAlarmRate,
    progress,
    ...(own === null ? {} : { arithmetic: own }),
    premises,
    ...(meter === null ? {} : { onBounds: meter.visit }),
    ...(onElements === undefined ? {} : { onElements }),
  });
  const identification =
    options.identify === true
      ? identifyKernel(problem, outputs.out, {
          reference,
          progress: (done, total) => progress('identification', done / total),
        })
      : null;
  const sketch = wantsSketch ? gatherSketch({ reference, outputs: audit.outputs }) : null;
  return { audit, techniques: meter?.table() ?? null, identification, sketch };
}
