import {
  dimensions,
  valueNames,
  type ComparedRow,
  type DimensionResult,
  type Invariance,
  type InvarianceChange,
  type QuantityChange,
} from '../../../../properties/index.js';
import { formatCount, listed } from '../../../words/index.js';
import type { ReportedProblem } from '../index.js';
import type { ReportedKernel } from './check-document.js';

/** Rows that a report lists of one change at most. */
const listedRows = 64;

/** How rows changed. */
export interface ReportedBits {
  readonly rows: { readonly differing: number; readonly compared: number };
  /** Null where there is no LSE to compare. */
  readonly lse: QuantityChange | null;
  readonly out: QuantityChange;
  /** The first rows that differ, 64 at most. */
  readonly places: readonly ComparedRow[];
}

/** The smallest change that was found of a dimension. */
export interface ReportedChange extends Pick<InvarianceChange, 'from' | 'to' | 'at' | 'fault'> {
  readonly bits: ReportedBits | null;
}

/** What was found of a dimension. */
export interface ReportedDimension extends Omit<DimensionResult, 'change'> {
  /** What the dimension changes. */
  readonly description: string;
  /** The names of its values from 0 on; null where they are numbers. */
  readonly valueNames: readonly string[] | null;
  readonly change: ReportedChange | null;
}

/** The report of a search for changes that change bits: the JSON document. */
export interface InvarianceReport {
  readonly kind: 'invariance';
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  readonly kernel: ReportedKernel;
  readonly problem: ReportedProblem;
  /** The sequence or batch whose rows were compared. */
  readonly sequence: number;
  /** Runs of the kernel. */
  readonly runs: number;
  readonly verdict: { readonly pass: boolean; readonly sentence: string };
  readonly dimensions: readonly ReportedDimension[];
}

/** The provenance of the report. */
export interface InvarianceProvenance {
  readonly version: string;
  readonly kernel: ReportedKernel;
  readonly problem: ReportedProblem;
  readonly seconds: number;
  /** Default now. */
  readonly created?: Date | undefined;
}

function reportedChange({ from, to, at, bits, fault }: InvarianceChange): ReportedChange {
  if (bits === null) return { from, to, at, fault, bits: null };
  const { rows, comparedRows, out, lse } = bits;
  const places = rows.slice(0, listedRows);
  const counts = { differing: rows.length, compared: comparedRows };
  return { from, to, at, fault, bits: { rows: counts, out, lse, places } };
}

/** What is found in one sentence. */
function sentenceOf({ invariant, dimensions: found, runs }: Invariance): string {
  const inRuns = formatCount(runs, 'run');
  const { change: again } = found[0];
  if (again !== null)
    return `NOT DETERMINISTIC: the same problem gives other bits when it is run again (${inRuns}).`;
  const changed = found.filter(({ change }) => change !== null).map(({ name }) => name);
  const compared = found.filter(({ result }) => result === 'invariant').length;
  if (!invariant) return `DIFFERS: rows depend on ${listed(changed)} (${inRuns}).`;
  return `INVARIANT: nothing that was tried changes a bit of the rows, in ${formatCount(compared, 'dimension')} (${inRuns}).`;
}

/** The report of a search. */
export function createInvarianceReport(
  found: Invariance,
  { version, kernel, problem, seconds, created = new Date() }: InvarianceProvenance,
): InvarianceReport {
  const { command, model, settings, judgedAs } = kernel;
  return {
    kind: 'invariance',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds,
    kernel: { command, model, settings: { ...settings }, judgedAs },
    problem,
    sequence: found.sequence,
    runs: found.runs,
    verdict: { pass: found.invariant, sentence: sentenceOf(found) },
    dimensions: found.dimensions.map(({ change, ...dimension }) => ({
      ...dimension,
      description: dimensions[dimension.name],
      valueNames: valueNames(
        dimension.name,
        Math.max(0, ...dimension.tried, ...dimension.declined),
      ),
      change: change && reportedChange(change),
    })),
  };
}
