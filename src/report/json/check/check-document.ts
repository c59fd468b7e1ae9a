import type {
  LawId,
  LawResult,
  RecurrentLawId,
  RecurrentRegimeName,
  RegimeName,
  ResolvedPromises,
  ResolvedRecurrentPromises,
  TriedSizes,
  ViolationKind,
} from '../../../../properties/index.js';
import type { ReportedProblem, ReportedRecurrence } from '../index.js';

/** The name of a property of attention or of linear attention. */
export type PropertyName = LawId | RecurrentLawId;

/** The kernel that was checked: a user's command, or an emulated model. */
export interface ReportedKernel {
  /** Null for an emulated kernel. */
  readonly command: string | null;
  /** Null for a command. */
  readonly model: string | null;
  /** Settings of the model, by key: of the model that ran, or of the model to judge by. */
  readonly settings: Readonly<Record<string, string>>;
  /** The model by whose arithmetic a command's outputs were judged; null for any correct kernel's. */
  readonly judgedAs: string | null;
}

/** The kernel's promises that decide which problems are drawn. */
export type ReportedPromises = Pick<
  ResolvedPromises,
  | 'formats'
  | 'causal'
  | 'window'
  | 'softcap'
  | 'features'
  | 'groupedHeads'
  | 'emptyRows'
  | 'scales'
  | 'specialValues'
  | 'lse'
  | 'dims'
  | 'sizes'
  | 'blockKeys'
  | 'rescaleThreshold'
  | 'groupSizes'
  | 'multiples'
> &
  // Left out for kernels without gradients.
  Partial<Pick<ResolvedPromises, 'gradients' | 'deterministic'>>;

/** The promises of a kernel of linear attention that decide which problems are drawn, and what is declared of it. */
export type ReportedRecurrentPromises = Pick<
  ResolvedRecurrentPromises,
  | 'families'
  | 'formats'
  | 'dims'
  | 'groupSizes'
  | 'packed'
  | 'initialState'
  | 'normalisation'
  | 'infiniteGates'
  | 'gradients'
  | 'deterministic'
  | 'chunk'
  | 'declared'
>;

/** The violation of a property, on the simplest problem that was found. */
export interface ReportedViolation {
  /** The fault, in a sentence without its full stop. */
  readonly statement: string;
  /** The likely cause of the violation on the problem as it was drawn, in a clause; null where there is none. */
  readonly cause: string | null;
  /**
   * The setting under which an audit of that problem would let the kernel pass, in a clause; null where there is none.
   */
  readonly hint: string | null;
  /** Violations of several properties that have one cause have the same kind. */
  readonly kind: ViolationKind;
  /** Index of the violated form of the property; 0 where there is only one form. */
  readonly choice: number;
  readonly regime: RegimeName | RecurrentRegimeName;
  /** The problem's number among those of its property, from 1. */
  readonly round: number;
  /** Number of problems of all properties until then, this one included. */
  readonly run: number;
  /** Seconds from the start until then. */
  readonly seconds: number;
  /** Number of simpler problems that failed as well, one after the other. */
  readonly simplifications: number;
  readonly problem: ReportedProblem | ReportedRecurrence;
  /** A line for each tensor of the problem with all its elements; null where there are many. */
  readonly values: readonly string[] | null;
  /** The file that the problem was saved to; null where that failed. */
  readonly saved: string | null;
  /** The words of the command that tries the saved problem again; null where there is no file. */
  readonly replay: readonly string[] | null;
}

/** The outcome of one property. */
export interface ReportedProperty {
  readonly name: PropertyName;
  /** The law, in a sentence without its full stop, and the reason why correct kernels obey it. */
  readonly statement: string;
  readonly reason: string;
  readonly promise: LawResult['strength'];
  readonly result: LawResult['status'];
  /** Number of problems to try it on, until it was violated or the time was up. */
  readonly runs: number;
  /** Number of problems that it was tried on: the kernel ran on them, and the law applies to them. */
  readonly tried: number;
  /** Number of the other problems: the kernel declined them, or the law does not apply to them. */
  readonly unsupported: number;
  /** The largest sizes of the problems that the kernel ran on, each size by itself; null for none, and for linear attention. */
  readonly sizes: TriedSizes | null;
  readonly seconds: number;
  /** The reason why it was not tried; null when it was. */
  readonly skipped: string | null;
  readonly violation: ReportedViolation | null;
}

/** Violations with one cause. */
export interface CheckFinding {
  /** The cause in a few words; for a single property its fault, if nothing more is known. */
  readonly title: string;
  /** The properties that it violates, the one with the smallest problem first. */
  readonly properties: readonly PropertyName[];
}

/** The shards of a divided check that a report covers. */
export interface ReportedShards {
  readonly count: number;
  /** The shards in the report, from 1, ascending. */
  readonly included: readonly number[];
  /** Those of them whose time was up before they had tried everything. */
  readonly outOfTime: readonly number[];
}

/** The report of `flashproof check`: a plain JSON value that check.schema.json describes. */
export interface CheckReport {
  readonly kind: 'check';
  readonly schemaVersion: 1;
  readonly tool: { readonly name: 'flashproof'; readonly version: string };
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly seconds: number;
  /** What the kernel is to compute: linear attention; left out for attention. */
  readonly contract?: 'recurrent';
  readonly kernel: ReportedKernel;
  readonly promises: ReportedPromises | ReportedRecurrentPromises;
  /** The seed; the same seed draws the same problems. */
  readonly seed: number;
  /** Number of problems to try each property on. */
  readonly runsPerProperty: number;
  /** Number of problems of all properties. */
  readonly runs: number;
  readonly outOfTime: boolean;
  /** Given only for a check that was divided. */
  readonly shards?: ReportedShards;
  readonly verdict: { readonly pass: boolean; readonly sentence: string };
  /** The reason why the kernel could not be run at all, in a sentence; null when it could. */
  readonly execution: string | null;
  /** Further remarks on a command, each a sentence without its full stop. */
  readonly notes: readonly string[];
  /** The violations by cause, with the causes shared by most properties first. */
  readonly findings: readonly CheckFinding[];
  readonly properties: readonly ReportedProperty[];
}
