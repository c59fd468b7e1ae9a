import type { ResultClasses } from './result-classes.js';
import type { CandidateName, ReferenceName } from './functions.js';
import type { EnvelopeSlice } from './envelope.js';
import type { Ordinal } from './float32-order.js';
import type { ErrorRecord, MonotonicityBreaks, Rounding } from './record.js';

/** One way of measuring the error of a result. */
export interface Measure {
  /** The rounding that is applied to the result first. */
  readonly rounding: Rounding;
  /** The error beside that in ulps: relative to the exact value, or the absolute difference. */
  readonly error: 'relative' | 'absolute';
}

/** The work to do at every input; plain data, so that it can be sent to another thread. */
export interface ErrorPlan {
  readonly kind: 'errors';
  /** The functions. The first is the baseline that the others' rounded results are compared with. */
  readonly candidates: readonly CandidateName[];
  /** The reference for errors: an exact function, or the baseline's rounded results. */
  readonly reference: ReferenceName | 'baseline';
  readonly measures: readonly Measure[];
  /** Whether the exact function increases; otherwise it decreases. */
  readonly increasing: boolean;
  /** The range of all slices, which has no place for the neighbour of the last input. */
  readonly first: Ordinal;
  readonly last: Ordinal;
  /** For each plot, the first input of every column, in ascending order, and the first input after the last column. */
  readonly panels: readonly (readonly Ordinal[])[];
}

/** Consecutive inputs, both ends included, whose ulps are all the same. */
export interface Slice {
  /** Index of the cell that they belong to. */
  readonly cell: number;
  readonly first: Ordinal;
  readonly last: Ordinal;
  /** Whether errors are measured; otherwise only the classes of the results are. */
  readonly isMeasured: boolean;
}

/** Results of a slice for one function. */
export interface CandidateSlice {
  readonly classes: ResultClasses;
  /** Errors by measure; empty where nothing is measured. */
  readonly errors: readonly ErrorRecord[];
  /** Crossings by measure: the breaks where one neighbour is computed by the baseline. */
  readonly crossings: readonly Crossing[];
  /** Envelopes of the first measure's scaled error, by panel; null for a panel that the slice does not touch. */
  readonly envelopes: readonly (EnvelopeSlice | null)[];
}

/** Breaks of monotonicity between neighbours that two functions compute. */
export interface Crossing {
  /** The smaller input by the baseline, the larger by the function. */
  readonly fromBaseline: MonotonicityBreaks;
  readonly toBaseline: MonotonicityBreaks;
}

/** Number of inputs at which the errors of a measure are defined. */
export interface MeasuredCounts {
  readonly scaled: number;
  readonly ulp: number;
}

/** Results of a slice for all functions. */
export interface SliceErrors {
  readonly kind: 'errors';
  readonly slice: Slice;
  /** Counts by measure; empty where nothing is measured. */
  readonly measured: readonly MeasuredCounts[];
  /** Results of the functions, in the order of the plan. */
  readonly candidates: readonly CandidateSlice[];
}
