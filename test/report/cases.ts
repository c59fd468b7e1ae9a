import type { ReportedNumbers, ReportedVectors } from '../../src/report/json/index.js';
import {
  normalCase,
  roundedGradients,
  type GradientCase,
  type GradientValues,
} from '../audit/gradients/gradient-case.js';
import { runPlainKernel, toFormat } from '../audit/declared-kernel.js';
import { drawProblem } from '../audit/declared-problems.js';
import { attentionOracle } from '../../oracles/index.js';
import type { AttributedKernel } from '../../kernels/index.js';
import { attributedKernel, createTechniqueTable } from '../../src/attribution/index.js';
import {
  auditAccuracy,
  auditGradients,
  auditOutputs,
  inTestOrder,
  sampleRows,
  type Audit,
  type KernelOutputs,
} from '../../src/audit/index.js';
import { decodeToFloat64, formats } from '../../src/formats/index.js';
import {
  attachScales,
  problemShape,
  storeProblem,
  type Problem,
  type Tensor,
} from '../../src/problem/index.js';
import {
  createAuditReport,
  createExecutionFailureReport,
  createGradientsReport,
  withGradients,
  withSplits,
} from '../../src/report/json/create-audit-report.js';
import type { AuditReport, JudgedReport, Provenance } from '../../src/report/json/audit-report.js';
import type { ComparedOutput } from '../../src/report/html/index.js';
import { createOutputComparer } from '../../src/jobs/index.js';
import {
  reportedGradients,
  type GradientBits,
  type ModelMatch,
} from '../../src/report/json/reported/gradients.js';
import type { ReportedSplits } from '../../src/report/json/reported/splits.js';
import { reportedComparison } from '../../src/report/json/reported/comparison.js';
import { lazily } from '../../src/reuse.js';
import { stated } from '../../src/words/index.js';
import { fromEnvironment, sampled as drawn } from '../setup/effort.js';
import { filledProblem, pseudorandom, tensor, type ProblemFrame } from '../setup/problems.js';

const small = { batch: 1, heads: 2, kvHeads: 2, queries: 20, keys: 24, dim: 8 } as const;

function problem(sizes: Partial<ProblemFrame> = {}, settings: Partial<Problem> = {}): Problem {
  const frame = { ...small, ...sizes };
  return filledProblem(frame, pseudorandom(frame.heads * 1000 + frame.queries), settings);
}

/** The first `keys` rows of each head of K or V. */
function firstKeys({ format, shape, data }: Tensor, keys: number): Tensor {
  const [, , all, dim] = shape as [number, number, number, number];
  const values = decodeToFloat64(data, formats[format]);
  const kept = [...values].filter((_, i) => Math.floor(i / dim) % all < keys);
  return tensor(format, [shape[0], shape[1], keys, dim], (i) => kept[i]);
}

type Change = (value: number, index: number) => number;
const same: Change = (value) => value;

/** What a perfect kernel would give, changed value by value; `lse` null leaves the LSE out. */
function outputs(of: Problem, out: Change, lse: Change | null): KernelOutputs {
  const { batch, heads, queries, vDim } = problemShape(of);
  const exact = attentionOracle(of);
  return {
    out: tensor(of.q.format, [batch, heads, queries, vDim], (i) =>
      out(exact.quantities.out.values[i], i),
    ),
    lse:
      lse === null
        ? null
        : tensor('fp32', [batch, heads, queries], (i) => lse(exact.quantities.lse.values[i], i)),
  };
}

/** Tensor, problem and command as the reports of the cases name them. */
export const provenance: Provenance = {
  version: '1.2.3',
  problem: { path: 'problem.safetensors', sha256: 'a'.repeat(64) },
  outputs: {
    out: { path: 'kernel.npz', tensor: 'out', sha256: 'b'.repeat(64), format: 'bf16' },
    lse: { path: 'kernel.npz', tensor: 'lse', sha256: 'c'.repeat(64), format: 'fp32' },
  },
  command: null,
  seconds: 0.125,
  created: new Date('2026-02-03T04:05:06.789Z'),
};

/** A judged output and its report. */
export interface Case {
  readonly audit: Audit;
  readonly report: AuditReport;
  /** The tests that must be among the findings; empty for a pass. */
  readonly findings: readonly string[];
}

function judged(
  of: Problem,
  made: KernelOutputs,
  findings: readonly string[],
  changed: Partial<Provenance> = {},
  kernel?: AttributedKernel,
): Case {
  const reference = attentionOracle(of, { accuracy: auditAccuracy(made.out.format) });
  const meter =
    kernel === undefined ? null : createTechniqueTable(reference, 'any correct kernel', { kernel });
  const audit = auditOutputs(of, made, {
    reference,
    ...(meter === null ? {} : { onBounds: meter.visit }),
  });
  const out = { ...provenance.outputs['out']!, format: made.out.format };
  const lse = made.lse === null ? null : provenance.outputs['lse'];
  const report = createAuditReport(
    of,
    audit,
    { ...provenance, outputs: { out, lse }, ...changed },
    meter?.table() ?? null,
  );
  return { audit, report, findings };
}

/** Large enough for its LSE to tell of scores in bf16. */
const normal = drawProblem(11, 0, Infinity, { heads: 1, queries: 12, keys: 96, dim: 64 });
const plain = problem();
/** Equal weights: several causes look alike. */
const unscaled = problem({}, { scale: 0 });
const grouped = problem({ batch: 2, heads: 4, kvHeads: 2, queries: 9, keys: 7 });
const masked = problem(
  { queries: 12, keys: 12 },
  { causal: true, window: { left: 5, right: -1 }, softcap: 3, scale: -0.7 },
);
/** Two tiles of keys, and what is left without the second. */
const long = problem({ keys: 150 });
const withoutLastTile = attentionOracle({
  ...long,
  k: firstKeys(long.k, 128),
  v: firstKeys(long.v, 128),
});
/** Every feature that goes with others. */
const featured = attachScales(
  problem(
    {},
    {
      mask: { shape: [20, 24], data: new Uint8Array(480).map((_, i) => (i % 5 === 0 ? 0 : 1)) },
      bias: tensor('fp32', [2, 1, 24], (i) => Math.sin(i)),
      alibiSlopes: tensor('fp32', [2], (i) => 2 ** -(i + 1)),
      sink: { logits: tensor('fp32', [2], (i) => i), inLse: true },
      segments: {
        queries: { shape: [20], data: new Int32Array(20).map((_, i) => Math.floor(i / 10)) },
        keys: { shape: [24], data: new Int32Array(24).map((_, i) => Math.floor(i / 12)) },
      },
      prefix: 3,
      blockMask: {
        counts: { shape: [1, 2], data: Int32Array.of(2, 2) },
        indices: { shape: [1, 2, 2], data: Int32Array.of(0, 1, 0, 1) },
        blockQueries: 16,
        blockKeys: 16,
      },
      dropout: {
        kept: { shape: [1, 24], data: new Uint8Array(24).map((_, i) => (i % 4 === 0 ? 0 : 1)) },
        probability: 0.25,
      },
    },
  ),
  { v: { descale: tensor('fp32', [], () => 0.5) } },
);
/** Queries that see the keys of lists, some places unused. */
const listed = problem(
  {},
  {
    keyLists: {
      indices: {
        shape: [1, 20, 1, 6],
        data: Int32Array.from({ length: 120 }, (_, i) =>
          i % 6 === 5 ? -1 : (Math.floor(i / 6) + 4 * (i % 6)) % 24,
        ),
      },
      blockKeys: 1,
      blockQueries: 1,
    },
  },
);
/** Three sequences, one of them without queries, with keys in pages of which some are unused. */
const packed = storeProblem(
  problem(
    {},
    {
      causal: true,
      sequences: [
        { firstQuery: 0, queries: 8, firstKey: 0, keys: 9 },
        { firstQuery: 8, queries: 0, firstKey: 9, keys: 3 },
        { firstQuery: 8, queries: 12, firstKey: 12, keys: 12 },
      ],
    },
  ),
  { queries: { kind: 'packed', spare: 4 }, keys: { kind: 'paged', pageSize: 4, spare: 1 } },
);
/** Causal with more queries than keys: the first rows see no key. */
const emptyRows = problem({ queries: 10, keys: 6 }, { causal: true });
const poisoned: Problem = {
  ...plain,
  v: tensor('bf16', plain.v.shape, (i) => (i === 11 ? NaN : i === 20 ? Infinity : (i % 7) - 3)),
};
const huge: Problem = {
  ...problem({ format: 'fp64', queries: 4, keys: 5 }),
  v: tensor('fp64', [1, 2, 5, 8], (i) => (i % 2 === 0 ? 1e200 : -1e200)),
};

/** The same numbers in fp32. */
function widened({ out, lse }: KernelOutputs): KernelOutputs {
  const values = decodeToFloat64(out.data, formats[out.format]);
  return { out: { format: 'fp32', shape: out.shape, data: Float32Array.from(values) }, lse };
}

/** The same of a sample of its rows, said to have statistics of some of them. */
function sampled(
  of: Problem,
  made: KernelOutputs,
  rows: number,
  findings: readonly string[],
  statistics?: number,
) {
  const { problem: some, outputs: given, sample } = sampleRows(of, made, { rows, seed: 3 })!;
  const told = statistics === undefined ? sample : { ...sample, statistics };
  return judged(some, given, findings, { sample: told });
}

/** Real audits, of every verdict and shape of result, by name. */
const cases: Readonly<Record<string, () => Case>> = {
  pass: () => judged(plain, outputs(plain, same, same), []),
  'pass without LSE': () => judged(plain, outputs(plain, same, null), []),
  'pass, grouped heads, batch 2': () => judged(grouped, outputs(grouped, same, same), []),
  'pass, causal, window, softcap': () => judged(masked, outputs(masked, same, same), []),
  'pass, rows without keys': () => judged(emptyRows, outputs(emptyRows, same, same), []),
  'pass, NaN and infinity in V': () => judged(poisoned, outputs(poisoned, same, same), []),
  'pass, fp32 output of bf16 numbers': () => judged(plain, widened(outputs(plain, same, same)), []),
  'nothing judged, no queries': () =>
    judged(problem({ queries: 0 }), outputs(problem({ queries: 0 }), same, same), []),
  'scores in bf16': () =>
    judged(
      normal,
      runPlainKernel(normal, () => ({ score: toFormat('bf16'), dividesFirst: true })),
      ['lse-bound'],
    ),
  'pass of a live kernel': () =>
    judged(plain, outputs(plain, same, same), [], {
      command: 'python kernel.py --fast',
    }),
  'pass, inputs that are not used': () =>
    judged(plain, outputs(plain, same, same), [], {
      unused: {
        ofAttention: ['bias', 'mask', 'metadata dropout_p'],
        ofGradients: ['dout'],
        unknown: ['x\u202e'],
      },
    }),
  'a sample of rows, O × 1.5': () =>
    sampled(
      plain,
      outputs(plain, (x) => 1.5 * x, same),
      16,
      ['scale', 'element-bound'],
    ),
  'a sample of rows with statistics of half of them': () =>
    sampled(plain, outputs(plain, same, same), 16, [], 8),
  'O × 1.5': () =>
    judged(
      plain,
      outputs(plain, (x) => 1.5 * x, same),
      ['scale', 'element-bound'],
    ),
  'O + 0.25': () =>
    judged(
      plain,
      outputs(plain, (x) => x + 0.25, same),
      ['bias', 'element-bound'],
    ),
  'O is zero on the last head': () =>
    judged(
      grouped,
      outputs(grouped, (x, i) => (i >= (grouped.q.data.length / 8) * 7 ? 0 : x), same),
      ['scale'],
    ),
  'a key tile is missing': () =>
    judged(
      long,
      outputs(long, (_, i) => withoutLastTile.quantities.out.values[i], null),
      ['key-tile'],
    ),
  'one element off': () =>
    judged(
      plain,
      outputs(plain, (x, i) => (i === 77 ? x + 1 : x), same),
      ['element-bound'],
    ),
  'NaN in O': () =>
    judged(
      plain,
      outputs(plain, (x, i) => (i === 3 ? NaN : x), same),
      ['non-finite'],
    ),
  'infinity in O': () =>
    judged(
      grouped,
      outputs(grouped, (x, i) => (i > 500 ? -Infinity : x), null),
      ['non-finite'],
    ),
  'O not zero on rows without keys': () =>
    judged(
      emptyRows,
      outputs(emptyRows, (x) => (x === 0 ? 0.5 : x), same),
      ['element-bound'],
    ),
  'O × 1.5, with techniques': () =>
    judged(
      plain,
      outputs(plain, (x) => x * 1.5, same),
      ['scale'],
      {},
      attributedKernel(plain),
    ),
  'O off by more than fp64 squares': () =>
    judged(
      huge,
      outputs(huge, (x) => -x + 1e199, same),
      ['element-bound'],
    ),
  'LSE in base 2': () =>
    judged(
      plain,
      outputs(plain, same, (x) => x / Math.LN2),
      ['lse-bound'],
    ),
  'LSE in base 2 where every score is zero': () =>
    judged(
      unscaled,
      outputs(unscaled, same, (x) => x / Math.LN2),
      ['lse-bound'],
    ),
  'LSE + 1': () =>
    judged(
      plain,
      outputs(plain, same, (x) => x + 1),
      ['lse-bound'],
    ),
  'LSE with NaN and off': () =>
    judged(
      plain,
      outputs(plain, same, (x, i) => (i === 4 ? NaN : i === 9 ? x + 3 : x)),
      ['lse-non-finite', 'lse-bound'],
    ),
  'pass of every feature': () => judged(featured, outputs(featured, same, same), []),
  'pass of lists of keys': () => judged(listed, outputs(listed, same, same), []),
  'pass of packed sequences': () => judged(packed, outputs(packed, same, same), []),
  'packed sequences, O and LSE with NaN and off': () =>
    judged(
      packed,
      outputs(
        packed,
        // Row 10 of the first head is query 2 of the last sequence.
        (x, i) => (i === 10 * 8 + 3 ? x + 9 : i === 11 * 8 ? NaN : x),
        (x, i) => (i === 10 ? x + 3 : i === 11 ? NaN : x),
      ),
      ['non-finite', 'element-bound', 'lse-non-finite', 'lse-bound'],
    ),
  'LSE finite on rows without keys': () =>
    judged(
      emptyRows,
      outputs(emptyRows, same, (x) => (Number.isFinite(x) ? x : 0)),
      ['lse-non-finite'],
    ),
};

/** An object whose members are made when they are first asked for. */
function made<T>(members: Readonly<Record<string, () => T>>): Readonly<Record<string, T>> {
  const of = {};
  for (const [name, create] of Object.entries(members))
    Object.defineProperty(of, name, { get: lazily(create), enumerable: true });
  return of;
}

/** Members that a default run tries, drawn by TEST_SEED; with LONG=1 all of them. */
function tried<T>(members: Readonly<Record<string, T>>, count: number): (readonly [string, T])[] {
  const names = Object.keys(members);
  const some = fromEnvironment('LONG', 0) === 1 ? names : drawn(names, count);
  return some.map((name) => [name, members[name]!] as const);
}

/** Reports of real audits, of every verdict and shape of result, by name. */
export const judgedCases = made(cases);

/** Some of them. */
export const someCases = tried(judgedCases, 8);

/** A live kernel that died. */
export const executionFailure: AuditReport = createExecutionFailureReport(
  plain,
  {
    reason:
      "the kernel's process was killed by SIGSEGV; replay with the problem problem.safetensors",
    isDeclined: false,
  },
  { ...provenance, outputs: {}, command: './kernel' },
);

/** A live kernel that does not take such problems. */
export const executionDeclined: AuditReport = createExecutionFailureReport(
  plain,
  { reason: "the kernel's process declined the problem: dim 7", isDeclined: true },
  { ...provenance, outputs: {}, command: './kernel' },
);

/** The exact output, and two others beside it. */
function comparedCase(of: Problem): readonly ComparedOutput[] {
  const reference = attentionOracle(of, { accuracy: auditAccuracy('bf16') });
  const compare = createOutputComparer(of, reference, 1e-9, provenance, []);
  const source = provenance.outputs['out']!;
  const others: readonly (readonly [string, Change])[] = [
    ['exact', same],
    ['× 1.5', (x) => 1.5 * x],
    ['no row', (x, i) => (i < 8 ? NaN : x)],
  ];
  return others.map(([name, change]) =>
    compare(name, { tensor: outputs(of, change, null).out, source }),
  );
}

/** Outputs of one problem, each beside the first. */
export const comparedOutputs = comparedCase(grouped);

/** The report of the first of them. */
export const comparedReport: JudgedReport = {
  ...comparedOutputs[0]!.report,
  comparison: reportedComparison(comparedOutputs),
};

/** The report of packed sequences, beside other outputs. */
function comparedPacked(): JudgedReport {
  const packedOutputs = comparedCase(packed);
  return { ...packedOutputs[0]!.report, comparison: reportedComparison(packedOutputs) };
}

/** Parts, of which one is wrong, and their merge, which is not what was given. */
const splits: ReportedSplits = {
  rule: 'blocks of 64 keys, as FlashAttention divides them',
  instead: 'equal parts',
  parts: [
    { keys: [{ begin: 0, end: 16 }], pass: true, ...stated('PASS', 'it is right.'), holds: null },
    { keys: [{ begin: 16, end: 24 }], pass: false, ...stated('FAIL', 'it is wrong.'), holds: 0 },
  ].map((part, split) => ({ split, ...part, boundUsed: 0.25, largestError: 'Infinity' })),
  merge: { pass: false, used: 7, lseUsed: 0.5, causes: ['part 1 was left out of the merge'] },
};

/** The report of an output with parts. */
export const splitReport: JudgedReport = withSplits(
  judgedCases['pass']!.report as JudgedReport,
  splits,
);

const frameOfGradients = { heads: 2, kvHeads: 1, queries: 20, keys: 24, dim: 8 } as const;
/** Of a scale of −1 several causes look alike. */
const ofGradients = normalCase(frameOfGradients, 3, { scale: -1 });
const packedGradients = normalCase(frameOfGradients, 4, {
  sequences: [
    { firstQuery: 0, queries: 8, firstKey: 0, keys: 10 },
    { firstQuery: 8, queries: 12, firstKey: 10, keys: 14 },
  ],
});
const { dq, dk, dv } = ofGradients.exact;

/** Bits of a gradient of so many elements. */
const bitsOf = (name: string, elements: number, likeness: GradientBits['likeness']) => ({
  name,
  label: `d${name[1].toUpperCase()}`,
  elements,
  equal: elements - 5,
  someOrder: 3,
  undecided: 1,
  noOrder: 1,
  likeness,
});

/** Comparisons with models: by settings, one that is nearer than another, and one that could not be made. */
const modelMatches: readonly ModelMatch[] = [
  {
    model: 'fa4',
    settings: { deterministic: 'true' },
    forward: 'given',
    reason: null,
    gradients: [
      bitsOf('dq', 320, { misrounded: 40, equalMisrounded: 30, largestDifference: 0.5 }),
      bitsOf('dk', 192, { misrounded: 0, equalMisrounded: 0, largestDifference: 0 }),
    ],
  },
  {
    model: 'naive-fp32',
    settings: {},
    forward: 'own',
    reason: null,
    gradients: [bitsOf('dv', 192, null)],
  },
  {
    model: 'naive-input',
    settings: {},
    forward: null,
    reason: 'dq is fp32, and naive-input gives bf16; their bits cannot be compared',
    gradients: [],
  },
];

/** Gradients that pass without the output, and dQ whose sign is wrong beside one that is right; with NaN in dK. */
const gradientReports = {
  pass: () =>
    createGradientsReport(
      ofGradients.problem,
      reportedGradients(
        auditGradients(ofGradients.problem, roundedGradients(ofGradients, { dq, dk, dv })),
      ),
      provenance,
    ),
  compared: () =>
    createGradientsReport(
      ofGradients.problem,
      {
        ...reportedGradients(
          auditGradients(ofGradients.problem, roundedGradients(ofGradients, { dq, dk, dv })),
        ),
        models: modelMatches,
      },
      provenance,
    ),
  sampled: () =>
    createGradientsReport(
      ofGradients.problem,
      reportedGradients(
        auditGradients(ofGradients.problem, roundedGradients(ofGradients, { dq, dk, dv }), {
          rows: { rows: 8, seed: 1 },
          keys: { keys: 6, seed: 1 },
        }),
      ),
      provenance,
    ),
  'wrong sign': () => gradientFailure(ofGradients, { dq: dq.map((x) => -x) }),
  'NaN in dQ and dK': () =>
    gradientFailure(ofGradients, {
      dq: dq.map((x, i) => (i === 5 ? NaN : x)),
      dk: dk.map((x, i) => (i === 5 ? NaN : x)),
    }),
  'NaN in packed dV': () =>
    gradientFailure(packedGradients, {
      dv: packedGradients.exact.dv.map((x, i) => (i === 100 ? NaN : x)),
    }),
};

function gradientFailure(of: GradientCase, values: Partial<GradientValues>): AuditReport {
  const { problem } = of;
  const { report } = judged(problem, outputs(problem, same, same), []);
  const audit = auditGradients(problem, roundedGradients(of, values));
  return withGradients(report as JudgedReport, reportedGradients(audit));
}

/** Every report, by name. */
export const everyReport = made<AuditReport>({
  ...Object.fromEntries(
    Object.keys(cases).map((name) => [name, () => judgedCases[name]!.report] as const),
  ),
  'outputs compared': () => comparedReport,
  'outputs of packed sequences compared': comparedPacked,
  'parts of a split problem': () => splitReport,
  'execution failure': () => executionFailure,
  'execution declined': () => executionDeclined,
  ...Object.fromEntries(
    Object.entries(gradientReports).map(([name, report]) => [`gradients: ${name}`, report]),
  ),
});

/** Reports of every kind by name, of which a default run tries some. */
export const reports = tried(everyReport, 12);

/** What a report says of O. */
export function outOf({ outputs }: AuditReport): ReportedVectors {
  const output = outputs?.find(({ name }) => name === 'out');
  if (output?.row !== 'vector') throw new Error('the report has no output');
  return output;
}

/** What a report says of the LSE; null where none was given. */
export function lseOf({ outputs }: AuditReport): ReportedNumbers['numbers'] | null {
  return outputs?.find(({ name }) => name === 'lse')?.numbers ?? null;
}

/** All structure tests of a report, in their order. */
export function structureIn({ outputs }: AuditReport): ReportedVectors['structure'] {
  return inTestOrder(outputs?.flatMap(({ structure }) => structure) ?? []);
}

/** A report whose first output is another. */
export function withOutput(
  report: AuditReport,
  change: (output: ReportedVectors) => object,
): AuditReport {
  const [, ...others] = report.outputs!;
  return { ...report, outputs: [change(outOf(report)), ...others] } as AuditReport;
}
