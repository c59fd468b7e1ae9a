import type { TechniqueTable } from '../../attribution/index.js';
import type { Audit, Verdict } from '../../audit/index.js';
import type { Problem } from '../../problem/index.js';
import { reasonOf, stated } from '../../words/index.js';
import type {
  JudgedReport,
  Provenance,
  ReportedFinding,
  ReportedSource,
  ReportHead,
  ReportWithoutOutput,
  WidenedTensor,
} from './audit-report.js';
import { toReported } from './report-number.js';
import { reportedOutput } from './reported/outputs.js';
import { qualifiedSentence, reportedProblem, unusedWarnings } from './reported/problem.js';
import { reportedSample } from './reported/sample.js';
import { joinVerdicts, type ReportedGradients } from './reported/gradients.js';
import { splitFindings, splitNotes, type ReportedSplits } from './reported/splits.js';

/** The judged tensors of a report; those that a command made are in no file. */
export function reportedSources({ outputs, command }: Provenance): ReportedSource[] {
  return Object.entries(outputs).flatMap(([name, source]) => {
    if (source === null) return [];
    const { path, tensor, sha256, format } = source;
    // The outputs of a command are in no file; dO and dS_T were given to it.
    const isMade = command !== null && name !== 'dout' && name !== 'dfinal_state';
    return [{ name, path: isMade ? null : path, tensor, sha256, format }];
  });
}

/** "q and out are fp32 in the file, widened from bf16, and judged as bf16": a clause for each pair of formats. */
export function widenedNotes(widened: readonly WidenedTensor[]): string[] {
  const pairOf = ({ format, storedAs }: WidenedTensor) => `${storedAs} ${format}`;
  const firsts = widened.filter(
    (one, i) => widened.findIndex((other) => pairOf(other) === pairOf(one)) === i,
  );
  return firsts.map((first) => {
    const { format, storedAs } = first;
    const names = widened.filter((one) => pairOf(one) === pairOf(first)).map(({ name }) => name);
    const listed = [...names.slice(0, -2), names.slice(-2).join(' and ')].join(', ');
    return `${listed} ${names.length === 1 ? 'is' : 'are'} ${storedAs} in the file, widened from ${format}, and judged as ${format}`;
  });
}

function reportedDiagnosis(diagnosis: Verdict['diagnosis']): Verdict['diagnosis'] {
  if (diagnosis === null) return null;
  const { id, equivalents, technique, place, sentence, evidence, candidates } = diagnosis;
  return {
    id,
    equivalents: [...equivalents],
    technique,
    place: structuredClone(place),
    sentence,
    evidence: [...evidence],
    candidates: candidates.map((one) => ({ ...one })),
  };
}

function reportHead(
  problem: Problem,
  provenance: Provenance,
  verdict: ReportHead['verdict'],
): ReportHead {
  const { path, sha256 } = provenance.problem;
  const warnings = unusedWarnings(provenance.unused ?? null);
  return {
    kind: 'audit',
    schemaVersion: 2,
    tool: { name: 'flashproof', version: provenance.version },
    created: (provenance.created ?? new Date()).toISOString(),
    seconds: provenance.seconds,
    inputs: {
      problem: { path, sha256 },
      outputs: reportedSources(provenance),
      command: provenance.command,
    },
    problem: reportedProblem(problem),
    sample: provenance.sample ? reportedSample(provenance.sample) : null,
    verdict: {
      pass: verdict.pass,
      status: verdict.status,
      judged: verdict.judged,
      sentence: qualifiedSentence(verdict.sentence, warnings),
      findings: verdict.findings.map((finding) => ({ ...finding })),
      diagnosis: reportedDiagnosis(verdict.diagnosis),
      premise: verdict.premise,
      notes: [...widenedNotes(provenance.widened ?? []), ...verdict.notes],
      untested: verdict.untested,
    },
    warnings,
  };
}

/**
 * The report of an audit, which shares no data with it.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function createAuditReport(
  problem: Problem,
  audit: Audit,
  provenance: Provenance,
  techniques: TechniqueTable | null = null,
): JudgedReport {
  return {
    ...reportHead(problem, provenance, audit.verdict),
    outputs: Object.values(audit.outputs)
      .filter((judged) => judged !== null && judged !== undefined)
      .map(reportedOutput) as unknown as JudgedReport['outputs'],
    ...(audit.sequences === null
      ? {}
      : { sequences: audit.sequences.map((usage) => toReported(usage)) }),
    ...(audit.keyTiles !== null && { keyTiles: toReported(audit.keyTiles) }),
    baselines: toReported(audit.baselines),
    oracle: toReported(audit.oracle),
    falseAlarmRate: audit.falseAlarmRate,
    arithmetic: audit.arithmetic,
    techniques: techniques === null ? null : toReported(techniques),
    comparison: null,
    splits: null,
  };
}

/** The reason why a live kernel gave no output. */
export interface NoOutput {
  /** A clause without its full stop. */
  readonly reason: string;
  /** Whether it declined such problems: by the protocol that is no fault. */
  readonly isDeclined: boolean;
}

/**
 * The report of a live kernel that gave no output: a fail, with the reason as the only finding; for a kernel that
 * declined the problem neither a fail nor a pass.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function createExecutionFailureReport(
  problem: Problem,
  { reason, isDeclined }: NoOutput,
  provenance: Provenance,
): ReportWithoutOutput {
  return {
    ...reportHead(problem, provenance, {
      pass: false,
      ...stated(isDeclined ? 'NOT JUDGED' : 'FAIL', `${reason}.`),
      findings: isDeclined
        ? []
        : [{ quantity: null, test: 'execution', isWorstCase: true, statement: reason }],
      judged: false,
      diagnosis: null,
      premise: null,
      notes: [],
      untested: [],
    }),
    ...withoutOutput,
  };
}

/** Members of a report for an output that does not exist. */
const withoutOutput = {
  outputs: null,
  baselines: null,
  oracle: null,
  falseAlarmRate: null,
  arithmetic: null,
  techniques: null,
  comparison: null,
  splits: null,
} as const;

/** A diagnosis of gradients in its reported form. */
function diagnosisOf({ diagnosis }: ReportedGradients): Verdict['diagnosis'] {
  if (diagnosis === null) return null;
  const { id, equivalents, place, sentence, evidence } = diagnosis;
  return {
    id,
    equivalents: [...equivalents],
    technique: null,
    place: structuredClone(place),
    sentence,
    evidence: [...evidence],
    candidates: [],
  };
}

/**
 * The report of gradients without an output to judge.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function createGradientsReport(
  problem: Problem,
  gradients: ReportedGradients,
  provenance: Provenance,
): ReportWithoutOutput {
  const { pass, status, judged, sentence, findings } = gradients;
  return {
    ...reportHead(problem, provenance, {
      pass,
      status,
      judged,
      sentence,
      findings,
      diagnosis: diagnosisOf(gradients),
      premise: null,
      notes: [],
      untested: [],
    }),
    ...withoutOutput,
    gradients,
  };
}

/** A report of an output with the gradients, which fails where they do. */
export function withGradients(report: JudgedReport, gradients: ReportedGradients): JudgedReport {
  const { verdict } = report;
  const joined = joinVerdicts(verdict, gradients);
  return {
    ...report,
    gradients,
    verdict: {
      ...verdict,
      ...joined,
      findings: [...verdict.findings, ...gradients.findings],
      diagnosis: verdict.diagnosis ?? diagnosisOf(gradients),
    },
  };
}

/** A report with one more note. @param note a clause */
export function withNote(report: JudgedReport, note: string): JudgedReport {
  const { verdict } = report;
  return { ...report, verdict: { ...verdict, notes: [...verdict.notes, note] } };
}

/** A report with the parts of a split problem, which fails where they do. */
export function withSplits(report: JudgedReport, splits: ReportedSplits): JudgedReport {
  const { verdict } = report;
  const found = splitFindings(splits, verdict.pass);
  const findings: readonly ReportedFinding[] = found.map(({ test, statement }) => ({
    quantity: null,
    test,
    isWorstCase: true,
    statement,
  }));
  const notes = [...verdict.notes, ...splitNotes(splits)];
  if (findings.length === 0) return { ...report, splits, verdict: { ...verdict, notes } };
  return {
    ...report,
    splits,
    verdict: {
      ...verdict,
      pass: false,
      ...stated('FAIL', `${findings[0].statement}; of the output: ${reasonOf(verdict)}`),
      findings: [...findings, ...verdict.findings],
      notes,
    },
  };
}
