/** The cause of a failure, as far as the evidence singles one out. */
export interface Diagnosis {
  /** Kebab-case name of the cause; `unexplained` when none of those known explains the output. */
  readonly id: string;
  /** Names of other causes that would have given the same output on this problem. */
  readonly equivalents: readonly string[];
  /** The technique at fault; null when it belongs to none, or is not known. */
  readonly technique: string | null;
  /** The cause in a clause, without its full stop. */
  readonly sentence: string;
  /** What speaks for it, a clause each. */
  readonly evidence: readonly string[];
}

/** The diagnosis of an output whose failure fits no known cause. */
export function unexplained(evidence: readonly string[]): Diagnosis {
  return { id: 'unexplained', equivalents: [], technique: null, sentence: 'unexplained', evidence };
}
