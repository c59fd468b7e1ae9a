import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentResults,
  RecurrentShape,
} from '../../problem/index.js';
import type { JudgedVectors } from '../judge-quantity.js';
import type { ReachedVerdict } from '../verdict.js';
import type { FoundCause } from '../conduct/causes.js';
import type { ErrorStatistic } from '../structure/error-statistic.js';
import type { RecurrentDeclaration } from './declaration.js';
import type { RecurrentTest } from './recurrent-statistic.js';

/** What a kernel of linear attention computed. */
export interface GivenRecurrence {
  /** Tensors in the shapes of `recurrentQuantityShape`. */
  readonly results: RecurrentResults;
  /** What gradients began with; without it none are judged. */
  readonly gradientInputs?: RecurrentGradientInputs | undefined;
}

/** Options of {@link auditRecurrent}. */
export interface RecurrentAuditOptions {
  /** Default: nothing is declared. */
  readonly declared?: RecurrentDeclaration | undefined;
  /** The probability that the statistical tests fail a correct kernel; default 1e-9. */
  readonly falseAlarmRate?: number | undefined;
  /** Whether the cause of a failure is looked for; default: it is. */
  readonly diagnose?: boolean | undefined;
  readonly progress?: ((stage: string, done: number) => void) | undefined;
}

/** Two sums that are the same number for every correct kernel. */
export interface RecurrentIdentity {
  /** Both sides in words, as in ⟨dO, O⟩ and ⟨dQ, Q⟩. */
  readonly sides: readonly [string, string];
  readonly values: readonly [number, number];
  /** Their difference, and the most that rounding explains. */
  readonly statistic: number;
  readonly threshold: number;
}

/** A judged quantity of a recurrence. */
export type JudgedRecurrence = JudgedVectors<ErrorStatistic<RecurrentTest>>;

/** The judgement of a kernel of linear attention. */
export interface RecurrentAudit {
  readonly verdict: ReachedVerdict<FoundCause>;
  readonly shape: RecurrentShape;
  /** In the order of `recurrentQuantities`. */
  readonly quantities: readonly JudgedRecurrence[];
  readonly identities: readonly RecurrentIdentity[];
  /** The arithmetic that the bounds are of, in words. */
  readonly arithmetic: string;
  readonly falseAlarmRate: number;
}

/**
 * Judges what a kernel of linear attention computed: each element against its worst case, the errors' spread, slopes and identities.
 * @throws RequestError for tensors that do not fit the problem
 */
export type AuditRecurrent = (
  problem: RecurrentProblem,
  given: GivenRecurrence,
  options?: RecurrentAuditOptions,
) => RecurrentAudit;
