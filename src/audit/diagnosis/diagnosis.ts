import type { PremiseDeclaration } from '../../../kernels/index.js';
import type { AttentionReference, WorkingMemories } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import type { JudgedOutputs } from '../judge-quantity.js';
import type { Place } from '../rows/index.js';

/** A cause that is not the cause, or not surely so. */
export interface DiagnosisCandidate {
  readonly id: string;
  readonly sentence: string;
  /**
   * Part of the squared error that it explains, of the LSE's where the LSE alone fails: 1 for all of it, 0 if
   * it explains no more than a correct output does.
   */
  readonly explained: number;
}

/** The cause of a failure, as far as the evidence singles one out. */
export interface Diagnosis {
  /** Kebab-case name of the cause; `unexplained` when none of those known explains the output. */
  readonly id: string;
  /** Names of other causes that would have given the same output on this problem. */
  readonly equivalents: readonly string[];
  /** The technique at fault; null when it belongs to none, or is not known. */
  readonly technique: string | null;
  /**
   * The place of the cause: the rows that err and that it explains, and with them those that it touches by
   * less than rounding shows; for an unexplained failure the rows that err. `describePlace` says it in words,
   * for behind the sentence. Null where no row is known to err.
   */
  readonly place: Place | null;
  /** The cause in a clause, without its place and its full stop. */
  readonly sentence: string;
  /** Evidence for the cause, a clause each. */
  readonly evidence: readonly string[];
  /** The nearest causes where none is named, the one that explains most first; else none. */
  readonly candidates: readonly DiagnosisCandidate[];
  /** Names of all causes that would leave nothing but rounding of the rows, whatever speaks for them; left out where none was tried. */
  readonly fitting?: readonly string[];
}

/** The diagnosis of an output whose failure fits no known cause; the evidence ends with the nearest causes. */
export function unexplained(
  evidence: readonly string[],
  place: Place | null = null,
  candidates: readonly DiagnosisCandidate[] = [],
): Diagnosis {
  const nearest = candidates.map(
    ({ sentence, explained }) =>
      `nearest: ${sentence} would explain ${Math.floor(explained * 100)} % of the squared error`,
  );
  return {
    id: 'unexplained',
    equivalents: [],
    technique: null,
    place,
    sentence: 'unexplained',
    evidence: [...evidence, ...nearest],
    candidates,
  };
}

/** A failed output with the audit's data on it. */
export interface DiagnosisInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: JudgedOutputs;
  readonly bound: KernelBound;
  /** What the kernel declares of its arithmetic. */
  readonly premises?: PremiseDeclaration | undefined;
  /** Memories of the audit, which keep what it has computed; default: none. */
  readonly memories?: WorkingMemories | undefined;
}
