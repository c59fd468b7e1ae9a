import type { RecurrentDeclaration } from '../../../src/audit/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentResults,
} from '../../../src/problem/index.js';
import type { LawStrength } from '../../laws/index.js';
import type {
  PlainRecurrence,
  PosedRecurrence,
  RecurrentConstraints,
  RecurrentRegimeName,
  TensorName,
} from '../problems/index.js';

/** A kernel of linear attention under test; where gradients are asked for it returns these too. */
export type RecurrentKernel = (
  problem: RecurrentProblem,
  gradients?: RecurrentGradientInputs,
) => RecurrentResults | Promise<RecurrentResults>;

/** Another setting of a kernel, in which it must be right too. */
export interface RecurrentConfiguration {
  readonly kernel: RecurrentKernel;
  /** What is declared of it; default: what is declared of the kernel, but for form and chunk, which a configuration changes. */
  readonly declared?: RecurrentDeclaration | undefined;
}

/** Results as numbers, by the names of their tensors. */
export type RecurrentNumbers = Readonly<Partial<Record<TensorName, Float64Array | undefined>>>;

/** One run of a kernel. */
export interface RecurrentRun {
  readonly posed: PosedRecurrence;
  readonly plain: PlainRecurrence;
  readonly results: RecurrentResults;
  /** The results decoded. */
  readonly numbers: RecurrentNumbers;
  /** What is declared of the kernel that ran. */
  readonly declared: RecurrentDeclaration;
}

/** What laws know of a kernel. */
export interface RecurrentLawPromises extends RecurrentConstraints {
  /** Whether gradients have the same bits on every run. */
  readonly deterministic: boolean;
  /** What is declared of its arithmetic. */
  readonly declared: RecurrentDeclaration;
  /** Other settings in which it must be right, by name. */
  readonly configurations: Readonly<Record<string, RecurrentConfiguration>>;
}

/** What a law has at hand. */
export interface RecurrentLawTools {
  readonly promises: RecurrentLawPromises;
  readonly strength: LawStrength;
  /**
   * Runs the kernel; gradients are asked for where the problem has a dO.
   * @throws KernelFault where it throws, or its result is none of the problem
   * @throws UnsupportedProblem
   */
  readonly run: (plain: PlainRecurrence) => Promise<RecurrentRun>;
  readonly runConfiguration: (name: string, plain: PlainRecurrence) => Promise<RecurrentRun>;
  /**
   * Judges results of a problem, perhaps put together from those of others, by an audit: what no rounding explains, or null.
   * @param worstCaseOnly whether statistics of errors are left out, which results that are put together need not obey
   */
  readonly judge: (run: RecurrentRun, worstCaseOnly: boolean) => string | null;
  /** Results that are put together, in the formats of a run of the same kernel. */
  readonly composed: (
    plain: PlainRecurrence,
    numbers: RecurrentNumbers,
    like: RecurrentRun,
  ) => RecurrentRun;
}

/** One problem to try a law on. */
export interface RecurrentCase {
  readonly posed: PosedRecurrence;
  /** The law's form: a whole number below its `choices`. */
  readonly choice: number;
}

/** A law that every correct kernel of linear attention obeys. */
export interface RecurrentLawOfKernels {
  /** The law, in a sentence. */
  readonly statement: string;
  /** Why a correct kernel obeys it, or what breaks it. */
  readonly reason: string;
  readonly strengths: readonly LawStrength[];
  /** What a kernel promises by default. */
  readonly usual: LawStrength;
  readonly choices: number;
  /** Whether it is a law of gradients: its problems have a dO. */
  readonly ofGradients?: boolean;
  /** The problems that it speaks of; null where it says nothing of such a kernel; default: all. */
  readonly narrow?: (promises: RecurrentLawPromises) => RecurrentConstraints | null;
  /** The regimes that it is tried in; default: all. */
  readonly regimes?: readonly RecurrentRegimeName[];
  /**
   * Tries it: the violation in a sentence without its full stop, or null.
   * @throws NotApplicable for a problem that it says nothing of
   */
  readonly violation: (
    plain: PlainRecurrence,
    choice: number,
    tools: RecurrentLawTools,
  ) => Promise<string | null>;
}
