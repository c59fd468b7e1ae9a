/** The word that a verdict begins with. */
export type VerdictWord = 'PASS' | 'FAIL' | 'NOT JUDGED';

/** The word and the colon at the beginning of a verdict's sentence. */
const beginning = /^(PASS|FAIL|NOT JUDGED): /;

/** A verdict's sentence without the word that it begins with. */
export function withoutWord(sentence: string): string {
  return sentence.replace(beginning, '');
}

/** Whether nothing of an output had a bound, there was nothing of it, or a kernel declined: neither a pass nor a failure. */
export function isNotJudged({ sentence }: { readonly sentence: string }): boolean {
  return sentence.startsWith('NOT JUDGED: ');
}

/** The word of a verdict of which the sentence is known, as of a part or of a compared output. */
export function wordOf(verdict: {
  readonly pass: boolean;
  readonly sentence: string;
}): VerdictWord {
  return verdict.pass ? 'PASS' : isNotJudged(verdict) ? 'NOT JUDGED' : 'FAIL';
}
