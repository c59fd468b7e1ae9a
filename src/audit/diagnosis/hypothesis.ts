import type { KeyRange, ProblemShape } from '../../problem/index.js';
import type { CauseFamily } from '../conduct/causes.js';
import type { DiagnosisInput } from './diagnosis.js';
import type { PredictionPlace, RowPrediction } from './prediction.js';
import type { RowReader } from './row-reader.js';

/** One row of the sample that hypotheses are tried on. */
export interface SampleRow extends PredictionPlace {
  /** Flat over [batch, heads, queries]. */
  readonly row: number;
  /** Flat over [batch, heads]. */
  readonly head: number;
  readonly query: number;
  /** Flat over [batch, kv heads]. */
  readonly kv: number;
  /** The keys that it sees. */
  readonly ranges: readonly KeyRange[];
  /** The range from the first of them to behind the last. */
  readonly span: KeyRange;
  /** Results of the kernel. */
  readonly observed: Float64Array;
  readonly observedLse: number | null;
  /** Results of a correct kernel. */
  readonly correct: RowPrediction;
  /** The logarithm of its row sum, a sink included; natural units. */
  readonly denominator: number;
  /** Σ over the columns of (Σ w|v|)². */
  readonly magnitude: number;
  /** Standard deviation expected of a correct kernel's LSE. */
  readonly lseNoise: number;
  /** Whether its error is more than rounding explains. */
  readonly damaged: boolean;
}

/** The material that hypotheses are made from. */
export interface HypothesisContext {
  readonly input: DiagnosisInput;
  readonly shape: ProblemShape;
  readonly reader: RowReader;
  /** Damaged rows first, the most instructive of them at the front. */
  readonly sample: readonly SampleRow[];
  /** Expected Σ over the columns of each row's squared rounding errors, by flat row. */
  readonly noise: Float64Array;
  /** Whether rows have so many keys that V is not held: hypotheses that can then say how weights differ from the correct ones. */
  readonly isLong?: boolean;
  /** Whether the output is right and the LSE alone is damaged. */
  readonly onlyLse: boolean;
  /**
   * Whether no row shows the error by itself: the rows of the sample are some of those that fail
   * together, and all of them count as damaged.
   */
  readonly pooled: boolean;
  /** The rows that err; where rows err only together, those that fail together. */
  readonly erring: readonly number[];
  /** Any row as the sample has it. */
  readonly buildRow: (row: number, damaged: boolean) => SampleRow;
}

/** A cause that may explain a failed output, with its prediction for each row. */
export interface Hypothesis {
  /** Kebab-case name of the cause, without its parameters. */
  readonly id: string;
  /** The step of the kernel that is at fault, by its technique; null when it belongs to none. */
  readonly technique: string | null;
  /** A clause with the parameters: "the scale is applied twice". */
  readonly statement: string;
  /** The clause without its parameters, for when several of them fit. */
  readonly cause?: string;
  /**
   * The results of the fault for a row, `row.correct` where it changes nothing, or null where no statement
   * about the row is possible.
   */
  readonly predict: (row: SampleRow) => RowPrediction | null;
  /**
   * The output of a sound kernel whose roundings the prediction contains, where it contains any: only
   * what it explains beyond that speaks for it.
   */
  readonly sound?: (row: SampleRow) => Float64Array;
  /**
   * Whether the statement already says which rows are meant, so that correct rows elsewhere do not
   * speak against it.
   */
  readonly local?: boolean;
  /** Whether a head has it as a whole, so that sound rows of the same head in another sequence speak against it. */
  readonly ofHeads?: boolean;
  /** Whether it is said of all rows, so that any sound row that it would have spoilt speaks against it. */
  readonly ofAll?: boolean;
  /**
   * Whether it is fitted to the sample so far that it is asked only when nothing simpler explains
   * the output.
   */
  readonly fitted?: boolean;
  /**
   * Whether a number of it is fitted to the sample. Roundings that agree can make that fit better than the
   * truth, so it does not exclude a hypothesis without such a number that leaves only rounding.
   */
  readonly adjusted?: boolean;
}

/** Lists the hypotheses of one kind that apply to a problem. */
export type HypothesisFamily = CauseFamily<HypothesisContext, Hypothesis>;

/** Products with V of one evaluation over the rows that a number is fitted to. */
const productBudget = 2 ** 21;
const fewestRows = 6;

/** Rows that a number of a hypothesis is fitted to: `most`, fewer for long problems. */
export function rowsToFit({ keys, vDim }: ProblemShape, most: number): number {
  const affordable = Math.floor(productBudget / Math.max(keys * vDim, 1));
  return Math.max(fewestRows, Math.min(most, affordable));
}
