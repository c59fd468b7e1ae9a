import type {
  ElementTest,
  JudgedRecurrence,
  RecurrentAudit,
  RecurrentIdentity,
  SpreadTest,
} from '../../../audit/index.js';
import type { FormatName } from '../../../formats/index.js';
import {
  recurrentScale,
  recurrentTensorName,
  type Quantity,
  type RecurrentFamily,
  type RecurrentProblem,
  type RecurrentShape,
} from '../../../problem/index.js';
import { formatCount, formatNumber, stated } from '../../../words/index.js';
import type { Provenance, ReportedFinding, ReportHead } from '../audit-report.js';
import { reportedSources, widenedNotes, type NoOutput } from '../create-audit-report.js';
import { toReported, type Reported } from '../report-number.js';
import { unusedWarnings } from '../reported/problem.js';

/** The sizes and settings of a problem of linear attention. */
export interface ReportedRecurrence {
  readonly family: RecurrentFamily;
  readonly batch: number;
  readonly tokens: number;
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Tokens of each packed sequence; null where there are none. */
  readonly sequences: readonly number[] | null;
  readonly formats: Readonly<Record<string, FormatName>>;
  readonly scale: number;
  /** The ε of q and k that are normalised; null where they are not. */
  readonly normalisation: number | null;
  readonly initialState: boolean;
  /** How Mamba-2 makes Δ of dt, and what lies behind its recurrence; left out for the other families. */
  readonly mamba2?: {
    readonly dtBias: boolean;
    readonly dtSoftplus: boolean;
    /** The least and the largest Δ. */
    readonly dtLimit: Reported<readonly [least: number, most: number]>;
    readonly skip: boolean;
    readonly gate: boolean;
  };
}

/** A judged quantity of linear attention. */
export interface ReportedRecurrentQuantity extends Pick<
  Quantity,
  'name' | 'prose' | 'label' | 'parts' | 'unit'
> {
  /** The word for a row in places. */
  readonly rowWord: 'token' | 'row';
  /** Number of heads in a batch entry, or a sequence, of it. */
  readonly heads: number;
  readonly format: FormatName;
  readonly elements: Reported<ElementTest>;
  readonly spread: Reported<SpreadTest>;
  readonly structure: Reported<JudgedRecurrence['structure']>;
}

/** The heads of q and k that are judged, where those are not all, each with all of its tokens. */
export interface ReportedHeadSample {
  readonly seed: number;
  /** Rows of the output that are judged, tokens of value heads, and of all. */
  readonly rows: number;
  readonly of: number;
  /** The judged heads of q and k, counted over batch and heads, and the number of all. */
  readonly keyHeads: readonly number[];
  readonly ofKeyHeads: number;
}

/** The report of a kernel of linear attention: recurrent.schema.json. */
export interface RecurrentReport {
  readonly kind: 'recurrent-audit';
  readonly schemaVersion: 1;
  readonly tool: ReportHead['tool'];
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  readonly inputs: ReportHead['inputs'];
  readonly problem: ReportedRecurrence;
  /** Null where all heads are judged, or nothing was given. */
  readonly sample: ReportedHeadSample | null;
  readonly verdict: Omit<RecurrentAudit['verdict'], 'findings'> & {
    readonly findings: readonly ReportedFinding[];
    /** Further remarks, a clause each. */
    readonly notes: readonly string[];
  };
  readonly warnings: ReportHead['warnings'];
  /** Empty where the kernel gave nothing to judge. */
  readonly quantities: readonly ReportedRecurrentQuantity[];
  readonly identities: readonly Reported<RecurrentIdentity>[];
  /** The arithmetic that the bounds hold for, in words; null where nothing was given to judge, and so of the rate. */
  readonly arithmetic: string | null;
  readonly falseAlarmRate: number | null;
}

/** The reported sizes and settings of a problem of linear attention, which has such a shape. */
export function reportedRecurrence(
  problem: RecurrentProblem,
  { shape }: Pick<RecurrentAudit, 'shape'>,
): ReportedRecurrence {
  const { family, q, k, v, g, beta, initialState, normalisation } = problem;
  const { batch, tokens, keyHeads, valueHeads, keyDim, valueDim, sequences } = shape;
  const { mamba2 } = problem;
  const steps = mamba2 && {
    dt: mamba2.dt,
    A: mamba2.a,
    D: mamba2.d,
    z: mamba2.z,
    dt_bias: mamba2.dtBias,
  };
  const { aLog, a, dtBias } = problem.gateInputs ?? {};
  const ofGates = { A_log: aLog, a, dt_bias: dtBias, b: problem.strengthLogits };
  const own = { q, k, v, g, beta, ...ofGates, initial_state: initialState };
  const tensors = [
    ...Object.entries(own).map(
      ([name, tensor]) => [recurrentTensorName(family, name), tensor] as const,
    ),
    ...Object.entries(steps ?? {}),
  ];
  return {
    family,
    batch,
    tokens,
    keyHeads,
    valueHeads,
    keyDim,
    valueDim,
    sequences:
      problem.cuSeqlens === undefined ? null : sequences.map(({ first, end }) => end - first),
    formats: Object.fromEntries(
      tensors.flatMap(([name, tensor]) => (tensor === undefined ? [] : [[name, tensor.format]])),
    ),
    scale: recurrentScale(problem),
    normalisation: normalisation?.epsilon ?? null,
    initialState: initialState !== undefined,
    ...(mamba2 && {
      mamba2: {
        dtBias: mamba2.dtBias !== undefined,
        dtSoftplus: mamba2.dtSoftplus,
        dtLimit: toReported(mamba2.dtLimit),
        skip: mamba2.d !== undefined,
        gate: mamba2.z !== undefined,
      },
    }),
  };
}

const keyHeadWords = ({ family }: ReportedRecurrence): string =>
  family === 'mamba2' ? 'B and C' : 'Q and K';

/** How Δ is made, in words. */
function describeSteps({
  dtBias,
  dtSoftplus,
  dtLimit: [least, most],
  gate,
}: NonNullable<ReportedRecurrence['mamba2']>): string[] {
  const sum = dtBias ? 'dt + dt_bias' : 'dt';
  const isLimited = least !== 0 || most !== 'Infinity';
  return [
    `Δ = ${dtSoftplus ? `softplus(${sum})` : sum}`,
    ...(isLimited ? [`from ${least} to ${most}`] : []),
    ...(gate ? ['gated by z'] : []),
  ];
}

/** How gates and write strengths are made, in words; none where they are given. */
function describeGates(formats: ReportedRecurrence['formats'], isMamba2: boolean): string[] {
  const sum = formats.dt_bias === undefined ? 'a' : 'a + dt_bias';
  return [
    ...(isMamba2 || formats.A_log === undefined ? [] : [`g = −exp(A_log) softplus(${sum})`]),
    ...(formats.b === undefined ? [] : ['β = σ(b)']),
  ];
}

/** The sizes and settings of a problem of linear attention, in the words of one sentence. */
export function describeReportedRecurrence(problem: ReportedRecurrence): string {
  const { family, batch, tokens, keyHeads, valueHeads, keyDim, valueDim, sequences } = problem;
  const [queries, keys, values] = ['q', 'k', 'v'].map((name) => recurrentTensorName(family, name));
  const { [queries]: q, [keys]: k, [values]: v, ...others } = problem.formats;
  const further = Object.entries(others).filter(([, format]) => format !== q);
  return [
    family,
    ...(batch === 1 ? [] : [`batch ${batch}`]),
    formatCount(valueHeads, 'head') +
      (keyHeads === valueHeads ? '' : ` (${keyHeads} of ${keyHeadWords(problem)})`),
    formatCount(tokens, 'token'),
    `dim ${keyDim}${valueDim === keyDim ? '' : ` (V ${valueDim})`}`,
    q === k && k === v ? q : `${queries} ${q}, ${keys} ${k}, ${values} ${v}`,
    ...further.map(([name, format]) => `${name} ${format}`),
    ...describeGates(problem.formats, problem.mamba2 !== undefined),
    ...(problem.mamba2 === undefined
      ? [`scale ${formatNumber(problem.scale)}`]
      : describeSteps(problem.mamba2)),
    ...(problem.normalisation === null
      ? []
      : [`q and k normalised with ε ${formatNumber(problem.normalisation)}`]),
    ...(problem.initialState ? ['begins with a state'] : []),
    ...(sequences === null
      ? []
      : [
          `${formatCount(sequences.length, 'sequence')} of ${Math.min(...sequences)} to ${Math.max(...sequences)} tokens`,
        ]),
  ].join(', ');
}

function reportedQuantity(judged: JudgedRecurrence): ReportedRecurrentQuantity {
  const { quantity, heads, format } = judged;
  const { name, prose, label, parts, unit, rowWord = 'token' } = quantity;
  return {
    name,
    prose,
    label,
    parts,
    unit,
    rowWord,
    heads,
    format,
    elements: toReported(judged.elements),
    spread: toReported(judged.spread),
    structure: toReported(judged.structure),
  };
}

function reportedHeadSample({ sample, shape }: RecurrentAudit): ReportedHeadSample | null {
  if (sample === null) return null;
  const { seed, rows, of, parts, ofParts } = sample;
  const keyHeads = parts.map(({ entry, keyHead }) => entry * shape.keyHeads + keyHead);
  return { seed, rows, of, keyHeads, ofKeyHeads: ofParts };
}

/** The most heads that are named one by one. */
const mostNamed = 8;

/** Describes the heads that were judged: a clause. */
export function describeHeadSample(
  { seed, rows, of, keyHeads, ofKeyHeads }: ReportedHeadSample,
  problem: ReportedRecurrence,
): string {
  const named = keyHeads.length > mostNamed ? '' : ` (${keyHeads.join(', ')})`;
  return `${rows} of ${of} rows: all tokens of ${keyHeads.length} of ${formatCount(ofKeyHeads, 'head')} of ${keyHeadWords(problem)}${named}, at random by seed ${seed}`;
}

/** Describes the heads that a sample leaves out: a clause. */
export function describeUnsampledHeads({
  rows,
  of,
  keyHeads,
  ofKeyHeads,
}: ReportedHeadSample): string {
  const seen = formatNumber(keyHeads.length / ofKeyHeads);
  return `${of - rows} of ${of} rows, those of the other heads: a fault in one head is in the sample with probability ${seen}; no cause is looked for`;
}

/** The part that reports of linear attention share. */
function reportHead(
  problem: RecurrentProblem,
  of: Pick<RecurrentAudit, 'shape'>,
  provenance: Provenance,
): Pick<
  RecurrentReport,
  'kind' | 'schemaVersion' | 'tool' | 'created' | 'seconds' | 'inputs' | 'problem' | 'warnings'
> {
  return {
    kind: 'recurrent-audit',
    schemaVersion: 1,
    tool: { name: 'flashproof', version: provenance.version },
    created: (provenance.created ?? new Date()).toISOString(),
    seconds: provenance.seconds,
    inputs: {
      problem: { ...provenance.problem },
      outputs: reportedSources(provenance),
      command: provenance.command,
    },
    problem: reportedRecurrence(problem, of),
    warnings: unusedWarnings(provenance.unused ?? null),
  };
}

/** The report of a kernel of linear attention that gave nothing to judge: a fail; of one that declined the problem neither a fail nor a pass. */
export function createRecurrentFailureReport(
  problem: RecurrentProblem,
  shape: RecurrentShape,
  { reason, isDeclined }: NoOutput,
  provenance: Provenance,
): RecurrentReport {
  return {
    ...reportHead(problem, { shape }, provenance),
    sample: null,
    verdict: {
      pass: false,
      ...stated(isDeclined ? 'NOT JUDGED' : 'FAIL', `${reason}.`),
      judged: false,
      premise: null,
      findings: isDeclined
        ? []
        : [{ quantity: null, test: 'execution', isWorstCase: true, statement: reason }],
      diagnosis: null,
      notes: widenedNotes(provenance.widened ?? []),
    },
    quantities: [],
    identities: [],
    arithmetic: null,
    falseAlarmRate: null,
  };
}

/** The report of an audit of linear attention, which shares no data with it. */
export function createRecurrentReport(
  problem: RecurrentProblem,
  audit: RecurrentAudit,
  provenance: Provenance,
  notes: readonly string[],
): RecurrentReport {
  const { pass, status, sentence, judged, findings, diagnosis, premise } = audit.verdict;
  return {
    ...reportHead(problem, audit, provenance),
    sample: reportedHeadSample(audit),
    verdict: {
      pass,
      status,
      judged,
      sentence,
      premise,
      findings: findings.map((finding) => ({ ...finding })),
      diagnosis: structuredClone(diagnosis),
      notes: [...widenedNotes(provenance.widened ?? []), ...notes],
    },
    quantities: audit.quantities.map(reportedQuantity),
    identities: audit.identities.map((one) => toReported(one)),
    arithmetic: audit.arithmetic,
    falseAlarmRate: audit.falseAlarmRate,
  };
}
