import {
  attentionOracle,
  levels,
  type Accuracy,
  type AttentionReference,
} from '../../oracles/index.js';
import { decodeToFloat64, formats, round, type FormatName } from '../formats/index.js';
import { problemShape, type Problem, type ProblemShape, type Tensor } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import { usualChecks, type Baselines } from './baselines.js';
import { anyKernelArithmetic, type KernelArithmetic, KernelBound } from './bounds/index.js';
import { diagnose } from './diagnosis/index.js';
import { elementBounds, type ElementBounds, type RowsBoundVisitor } from './element-bounds.js';
import { testElements, type ElementTest } from './element-test.js';
import { createRowStatistics, type RowStatistics } from './row-statistics.js';
import type { PremiseDeclaration } from './premise-declaration.js';
import { resolvePremises, type Premises } from './premises.js';
import { profileError, type ErrorProfile } from './error-profile.js';
import { testLse, type LseTest } from './lse-test.js';
import { testSpread, type SpreadTest } from './spread-test.js';
import { structureResults, type StructureResult } from './structure.js';
import { fitPremise } from './premise-fit.js';
import { untestedStructure } from './untested-structure.js';
import { reachVerdict, type Explainers, type Verdict } from './verdict.js';

/** What a kernel made of a problem. */
export interface KernelOutputs {
  /** [batch, heads, seqlen_q, v dim], or rank 3 for a batch of one. */
  readonly out: Tensor;
  /** [batch, heads, seqlen_q]; see `auditableLse` for the shapes taken. */
  readonly lse: Tensor | null;
}

/** All that an output is judged by, element by element and row by row. Arrays are not to be changed. */
export interface JudgedElements {
  readonly reference: AttentionReference;
  /** [batch, heads, seqlen_q, v dim], decoded. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  /** Of the arithmetic in use; `total` is what an element is allowed. */
  readonly bounds: ElementBounds;
  readonly rows: RowStatistics;
}

/** By what an audit judges; without any, by what any correct kernel may do. */
export interface AuditOptions {
  /** How the kernel computes, where that is known; default: as any correct kernel may. */
  readonly arithmetic?: KernelArithmetic;
  /**
   * What the kernel declares of its arithmetic; default nothing, so that the bounds are those of any
   * correct kernel. Beside `arithmetic` it says what the statistical tests are to expect.
   */
  readonly premises?: PremiseDeclaration | undefined;
  /** The problem's exact attention, where it is known already (to `auditAccuracy` or better). */
  readonly reference?: AttentionReference;
  /** Called with the bounds of one part of the rows after the other, of the arithmetic in use. */
  readonly onBounds?: RowsBoundVisitor;
  /**
   * The bounds of this very problem, arithmetic, premises and output format, where an audit of another
   * output has them already (see `onElements`); `onBounds` is not called then.
   */
  readonly bounds?: ElementBounds;
  /** Called once with every element and row, before the verdict is reached. */
  readonly onElements?: (judged: JudgedElements) => void;
  /** Probability that the statistical tests fail a correct kernel; default 1e-9 per audit. */
  readonly falseAlarmRate?: number;
  /** Whether a failure's cause is looked for, which takes some audits' time; default true. */
  readonly diagnose?: boolean;
  /** Called with the stage's name and the share of it that is done. */
  readonly progress?: (stage: string, done: number) => void;
}

/** The whole judgement of one output. */
export interface Audit {
  readonly verdict: Verdict;
  readonly shape: ProblemShape;
  readonly error: ErrorProfile;
  readonly elements: ElementTest;
  readonly spread: SpreadTest;
  readonly structure: readonly StructureResult[];
  readonly lse: LseTest | null;
  readonly baselines: Baselines;
  readonly oracle: {
    /** Rows settled at each level of precision. */
    readonly rows: Readonly<Record<(typeof levels)[number], number>>;
    /** Largest radius relative to Σ p|v| / Σ p. */
    readonly largestRadius: number;
  };
  readonly falseAlarmRate: number;
  /** Whose arithmetic the bounds are of, in words. */
  readonly arithmetic: string;
}

/** The audit's oracle: a radius of 2^-40 of Σ p|v|, far below any bound it is compared with. */
export function auditAccuracy(outputFormat: FormatName): Accuracy {
  return { outputFormat, ulpFraction: 0, magnitudeFraction: 2 ** -40 };
}

function decode(tensor: Tensor): Float64Array {
  const out = new Float64Array(tensor.data.length);
  decodeToFloat64(tensor.data, formats[tensor.format], out);
  return out;
}

/**
 * The output's values, [batch, heads, seqlen_q, v dim].
 * @throws RequestError when the tensor has another shape
 */
export function auditableOutput(out: Tensor, shape: ProblemShape): Float64Array {
  const wanted = [shape.batch, shape.heads, shape.queries, shape.vDim];
  const got = out.shape.length === 3 ? [1, ...out.shape] : out.shape;
  if (got.length !== 4 || got.some((size, i) => size !== wanted[i]))
    throw new RequestError(
      `the output has shape [${out.shape.join(', ')}] but the problem asks for [${wanted.join(', ')}]; pass the matching tensor, or --layout bshd`,
    );
  return decode(out);
}

/**
 * The LSE as [batch, heads, seqlen_q], decoded. Kernels write it as [batch, heads, seqlen_q], without
 * the batch when that is one, with batch and heads merged, with a trailing dimension of one (cuDNN),
 * or with rows padded beyond seqlen_q (CUTLASS pads to 32), whose padding is dropped.
 * @throws RequestError for any other shape.
 */
export function auditableLse(lse: Tensor, shape: ProblemShape): Float64Array {
  const { batch, heads, queries } = shape;
  const dims = [...lse.shape];
  if (dims.length > 1 && dims.at(-1) === 1 && dims.at(-2)! >= queries && queries !== 1) dims.pop();
  if (dims.length === 4 && dims.at(-1) === 1) dims.pop();
  const stride = dims.at(-1) ?? 0;
  const outer = dims.slice(0, -1);
  const leading = outer.reduce((a, b) => a * b, 1);
  const fits =
    outer.length === 2
      ? outer[0] === batch && outer[1] === heads
      : outer.length === 1 && leading === batch * heads;
  if (!fits || stride < queries) {
    const got = lse.shape.length === 2 ? [1, ...lse.shape] : lse.shape;
    const isTurned = String(got) === String([batch, queries, heads]);
    const mend = isTurned ? ', or turn [batch, seqlen, heads] into [batch, heads, seqlen]' : '';
    throw new RequestError(
      `the LSE has shape [${lse.shape.join(', ')}] but the problem asks for [${batch}, ${heads}, ${queries}]; pass the matching tensor${mend}`,
    );
  }
  const values = decode(lse);
  const aligned = new Float64Array(batch * heads * queries);
  for (let head = 0; head < leading; head++)
    aligned.set(values.subarray(head * stride, head * stride + queries), head * queries);
  return aligned;
}

function summariseOracle(reference: AttentionReference): Audit['oracle'] {
  const rows = Object.fromEntries(levels.map((level) => [level, 0])) as Record<
    (typeof levels)[number],
    number
  >;
  for (const level of reference.level) rows[levels[level]]++;
  let largestRadius = 0;
  reference.quantities.out.radius.forEach((radius, i) => {
    const magnitude = reference.quantities.out.magnitude[i];
    if (radius > 0 && magnitude > 0 && magnitude < Infinity)
      largestRadius = Math.max(largestRadius, radius / magnitude);
  });
  return { rows, largestRadius };
}

/** Says so where every output of a long format is a number of a short one. */
function narrowerNotes(out: Float64Array, format: FormatName): string[] {
  if (formats[format].precision < formats.fp32.precision || out.length === 0) return [];
  const narrow = (['bf16', 'fp16'] as const).filter((name) =>
    out.every((x) => Object.is(round(formats[name], x), x)),
  );
  if (narrow.length === 0 || out.every((x) => x === 0)) return [];
  return [
    `every ${format} output is a number of ${narrow.join(' and of ')}: the kernel rounds to that, or something after it does; dump the output in its own format`,
  ];
}

/** How a kernel is taken to compute: as is declared, else as its premises admit. */
function judgedArithmetic(
  problem: Problem,
  outputFormat: FormatName,
  premises: Premises,
  { arithmetic }: AuditOptions,
): KernelArithmetic {
  const { outputRounding } = premises;
  return arithmetic === undefined
    ? anyKernelArithmetic(problem, outputFormat, premises)
    : { ...arithmetic, outputFormat, outputRounding };
}

/** The bounds that an output is judged by: of its own arithmetic, else of what any kernel may do. */
function judgedBounds(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  bound: KernelBound,
  { onBounds }: AuditOptions,
  progress: (done: number) => void,
): ElementBounds {
  const visitor = onBounds === undefined ? {} : { visit: onBounds };
  return elementBounds(problem, reference, arithmetic, bound, { ...visitor, progress });
}

/** What the tests say of an output, without the profile of its error and what others would say. */
export type Judgement = Omit<Audit, 'error' | 'baselines'> & {
  readonly reference: AttentionReference;
};

/**
 * Judges a kernel's output, and its LSE if it gives one, against the oracle: worst-case bound on every
 * element, what independent roundings add up to, structure tests, LSE.
 * @throws RequestError when a tensor does not fit the problem.
 */
export function judgeOutputs(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions = {},
): Judgement {
  const falseAlarmRate = options.falseAlarmRate ?? 1e-9;
  const shape = problemShape(problem);
  const out = auditableOutput(outputs.out, shape);
  const lse = outputs.lse === null ? null : auditableLse(outputs.lse, shape);
  const { format } = outputs.out;
  const report = (stage: string) => (done: number) => options.progress?.(stage, done);
  const reference =
    options.reference ??
    attentionOracle(problem, { accuracy: auditAccuracy(format), progress: report('oracle') });
  // Half of the false alarms for the structure tests, half for the spread.
  const randomRate = falseAlarmRate / 2;
  const premises = resolvePremises(problem, format, options.premises);
  const arithmetic = judgedArithmetic(problem, format, premises, options);
  const bound = new KernelBound(problem, reference, format, premises);
  const rowMeter =
    options.onElements === undefined
      ? null
      : createRowStatistics(problem, reference, options.arithmetic?.maximum ?? null);
  const structure = structureResults(
    {
      problem,
      reference,
      out,
      bound,
      falseAlarmRate: randomRate,
      outputFormat: format,
      lse: lse === null ? null : { values: lse, format: outputs.lse!.format },
      premises,
    },
    report('structure'),
    rowMeter?.visitor,
  );
  const bounds =
    options.bounds ??
    judgedBounds(problem, reference, arithmetic, bound, options, report('bounds'));
  if (rowMeter !== null)
    options.onElements!({
      reference,
      out,
      outputFormat: format,
      bounds,
      rows: rowMeter.statistics,
    });
  const elements = testElements(
    reference,
    out,
    format,
    bounds.quantities.out.total,
    premises.isShortRange,
  );
  const spread = testSpread(reference, out, bounds, randomRate);
  const lseTest =
    lse === null ? null : testLse(reference, lse, outputs.lse!.format, bounds.quantities.lse.total);
  const diagnosis = () =>
    diagnose({
      problem,
      reference,
      out,
      outputFormat: format,
      lse,
      bound,
      elements,
      spread,
      structure,
      lseTest,
    });
  // Who declares something knows what the kernel does.
  const isDeclared = options.arithmetic !== undefined || !premises.isUsual;
  const passes = (premises: PremiseDeclaration) =>
    judgeOutputs(problem, outputs, { reference, falseAlarmRate, premises, diagnose: false }).verdict
      .pass;
  const explainers: Explainers = {
    diagnose: diagnosis,
    fitPremise: (findings) =>
      isDeclared || elements.nonFinite > 0 || (lseTest?.nonFinite ?? 0) > 0
        ? null
        : fitPremise({
            problem,
            reference,
            out,
            outputFormat: format,
            lse,
            passes,
            onlyLse: findings.every(({ test }) => test.startsWith('lse')),
          }),
  };
  const wanted = options.diagnose === false ? null : explainers;
  return {
    verdict: reachVerdict(
      {
        elements,
        spread,
        structure,
        lse: lseTest,
        heads: shape.heads,
        untested: untestedStructure(structure, shape, premises, lse !== null),
        arithmetic: arithmetic.description,
        notes: narrowerNotes(out, format),
      },
      wanted,
    ),
    reference,
    shape,
    elements,
    spread,
    structure,
    lse: lseTest,
    arithmetic: arithmetic.description,
    oracle: summariseOracle(reference),
    falseAlarmRate,
  };
}

/**
 * Judges an output as `judgeOutputs`; beside that the error profile and what the usual checks say.
 * @throws RequestError when a tensor does not fit the problem.
 */
export function auditOutputs(
  problem: Problem,
  outputs: KernelOutputs,
  options: AuditOptions = {},
): Audit {
  const { reference, ...judgement } = judgeOutputs(problem, outputs, options);
  const { format } = outputs.out;
  const out = auditableOutput(outputs.out, judgement.shape);
  return {
    ...judgement,
    error: profileError(reference, out, format),
    baselines: usualChecks(problem, reference, out, format),
  };
}
