/** The outcome of a judgement: `NOT JUDGED` is neither a pass nor a failure, as nothing was held against a bound. */
export type VerdictStatus = 'PASS' | 'FAIL' | 'NOT JUDGED';

/** The status and the sentence of a verdict; the sentence begins with the status and a colon. */
export interface StatedVerdict {
  readonly status: VerdictStatus;
  readonly sentence: string;
}

/** A verdict's status and sentence from its reason, which ends with a full stop. */
export function stated(status: VerdictStatus, reason: string): StatedVerdict {
  return { status, sentence: `${status}: ${reason}` };
}

/** The reason in a verdict's sentence: all behind its status. */
export function reasonOf({ status, sentence }: StatedVerdict): string {
  return sentence.slice(status.length + 2);
}

/** The reason in a verdict's sentence without its full stop, to go on from. */
export function reasonClause(verdict: StatedVerdict): string {
  return reasonOf(verdict).replace(/\.$/, '');
}
