/** The word with which a verdict begins. */
export type VerdictWord = 'PASS' | 'FAIL' | 'NOT JUDGED';

/** The word and the colon at the beginning of a verdict's sentence. */
const beginning = /^(PASS|FAIL|NOT JUDGED): /;

/** A verdict's sentence without its first word. */
export function withoutWord(sentence: string): string {
  return sentence.replace(beginning, '');
}

/** Whether no part of an output had a bound, there was no output, or a kernel declined: neither a pass nor a failure. */
export function isNotJudged({ sentence }: { readonly sentence: string }): boolean {
  return sentence.startsWith('NOT JUDGED: ');
}

/** The word of a verdict with a known sentence, such as that of a part or of a compared output. */
export function wordOf(verdict: {
  readonly pass: boolean;
  readonly sentence: string;
}): VerdictWord {
  return verdict.pass ? 'PASS' : isNotJudged(verdict) ? 'NOT JUDGED' : 'FAIL';
}
