import type { SpreadScope, StructureScope, StructureTest } from '../../audit/index.js';

/** The tests that take part in the verdict, in the order of the table. */
export type ReportedTest =
  'not finite' | 'element' | 'spread' | 'rms' | StructureTest | 'LSE not finite' | 'LSE';

/** How the table of tests words one of them. */
export interface TestWords {
  /** Of found and allowed. */
  readonly unit: string;
  /** What is compared with what, in one line. */
  readonly gloss: string;
}

/** The words of each test; a new test has a row here and nothing else in the report. */
export const testWords: Readonly<Record<ReportedTest, TestWords>> = {
  'not finite': {
    unit: 'elements',
    gloss: 'NaN or infinite where a correct kernel is not, or the reverse',
  },
  element: { unit: 'output units', gloss: 'each |error| against the worst case of its own' },
  spread: { unit: 'output units', gloss: 'each |error| against what independent roundings do' },
  rms: { unit: 'output units', gloss: 'root mean square error against what roundings do' },
  scale: { unit: 'a ratio', gloss: 'slope of the output on the oracle, less 1' },
  bias: { unit: 'output units', gloss: 'mean signed error' },
  truncation: { unit: 'half ulps', gloss: 'error away from 0; −1 where digits are cut off' },
  dispersion: { unit: 'a ratio', gloss: "root mean square of the rows' slopes" },
  'lse-mean': { unit: 'natural logarithm', gloss: 'mean error of the LSE over a head' },
  'key-tile': { unit: 'a ratio', gloss: 'share of a tile of keys lost (+) or counted twice (−)' },
  'LSE not finite': {
    unit: 'rows',
    gloss: 'NaN or infinite where a correct kernel is not, or the reverse',
  },
  LSE: { unit: 'natural logarithm', gloss: "each row's error against its worst case" },
};

/** "rms, head": a test, and over what it is pooled. */
export function testLabel(test: ReportedTest, scope?: SpreadScope | StructureScope): string {
  return scope === undefined ? test : `${test}, ${scope}`;
}
