import type { GradientQuantityName, GradientTechniqueTable, RowSample } from '../../audit/index.js';
import type { FormatName } from '../../formats/index.js';
import type { TechniqueTable } from '../../attribution/index.js';
import type { Problem } from '../../problem/index.js';
import { type Reported, toReported } from './report-number.js';
import { boundedSample, type BoundedSample } from './reported/sample.js';
import { reportedProblem, type ReportedProblem } from './reported/problem.js';
import type { Profile } from '../../profile/index.js';

/** The report of `flashproof bound`: a plain JSON value that bound.schema.json describes. */
export interface BoundReport {
  readonly kind: 'bound';
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  readonly inputs: { readonly problem: { readonly path: string; readonly sha256: string } };
  readonly problem: ReportedProblem;
  /** The rows that are bounded; null for all. */
  readonly sample: BoundedSample | null;
  readonly techniques: Reported<TechniqueTable>;
  /** The bounds of dQ, dK and dV; null where they were not requested. */
  readonly gradients: BoundedGradients | null;
}

/** The error that each technique of a backward pass may cause. */
export interface BoundedGradients {
  /** The arithmetic that the bounds hold for, in words. */
  readonly arithmetic: string;
  /** Format of dQ, dK and dV. */
  readonly format: FormatName;
  readonly gradients: readonly {
    readonly name: GradientQuantityName;
    readonly label: string;
    /** Name of its elements. */
    readonly parts: string;
    readonly techniques: Reported<GradientTechniqueTable>;
  }[];
}

/** A table of a gradient's techniques in its reported form. */
export function toReportedTechniques(
  table: GradientTechniqueTable,
): Reported<GradientTechniqueTable> {
  return toReported(table);
}

/** The origin of a bound report's problem, its program and its time. */
export interface BoundProvenance {
  readonly version: string;
  readonly problem: { readonly path: string; readonly sha256: string };
  readonly seconds: number;
  /** The rows that are bounded; null, or left out, for all. */
  readonly sample?: RowSample | null;
  /** Default: now. */
  readonly created?: Date;
}

/**
 * The report of a table of bounds, which shares no data with it.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function createBoundReport(
  problem: Problem,
  table: TechniqueTable,
  { version, problem: source, seconds, sample = null, created = new Date() }: BoundProvenance,
): BoundReport {
  return {
    kind: 'bound',
    schemaVersion: 1,
    tool: { name: 'flashproof', version },
    created: created.toISOString(),
    seconds,
    inputs: { problem: { path: source.path, sha256: source.sha256 } },
    problem: reportedProblem(problem),
    sample: sample === null ? null : boundedSample(sample),
    techniques: toReported(table),
    gradients: null,
  };
}

/**
 * A profile as a JSON document: everything except the plots. Bit patterns are hexadecimal strings;
 * a number that is not finite is a string; null stands for a figure that does not exist.
 */
export function profileDocument(profile: Profile): object {
  const kept = Object.entries(profile).filter(([key]) => key !== 'plots');
  return toReported(Object.fromEntries(kept)) as object;
}
