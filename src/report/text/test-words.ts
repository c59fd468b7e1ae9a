import type { SpreadScope, StructureScope, StructureTest } from '../../audit/index.js';
import type { Quantity } from '../../problem/index.js';

/** The data of one row of the table of tests. */
export interface TestRow {
  /** Key by which its words are found, and by which tests of several places are one. */
  readonly test: string;
  /** Whether chance takes part in it. */
  readonly isStatistical: boolean;
  readonly label: string;
  readonly found: number;
  /** Null for a count, whose allowance is none. */
  readonly allowed: number | null;
  readonly place: string;
}

/** The words for a test in the table of tests. */
interface TestWords {
  /** Unit of found and allowed. */
  readonly unit: string;
  /** The comparison that the test makes, in one line. */
  readonly gloss: string;
}

/** Members of a quantity that name it where its tests are worded. */
type Worded = Pick<Quantity, 'name' | 'label' | 'parts' | 'unit' | 'row'>;

/** The name of a quantity's test: those of the output are bare, others follow the label. */
export function testName({ name, label }: Worded, test: string): string {
  if (name === 'out') return test;
  return test === '' ? label : `${label} ${test}`;
}

const notFinite = 'NaN or infinite where a correct kernel is not, or the reverse';

const structureWords: Readonly<Record<StructureTest, TestWords>> = {
  scale: { unit: 'a ratio', gloss: 'slope of the output on the oracle, less 1' },
  bias: { unit: 'output units', gloss: 'mean signed error' },
  truncation: { unit: 'half ulps', gloss: 'error away from 0; −1 where digits are cut off' },
  dispersion: { unit: 'a ratio', gloss: "root mean square of the rows' slopes" },
  'lse-mean': { unit: 'natural logarithm', gloss: 'mean error of the LSE over a head' },
  'key-tile': { unit: 'a ratio', gloss: 'share of a tile of keys lost (+) or counted twice (−)' },
};

/** The words of the tests of single elements and of their spread, by the tests' names. */
function ownWords(quantity: Worded): Readonly<Record<string, TestWords>> {
  const { parts, unit } = quantity;
  const finite = { [testName(quantity, 'not finite')]: { unit: parts, gloss: notFinite } };
  if (quantity.row === 'number')
    return {
      ...finite,
      [testName(quantity, '')]: { unit, gloss: "each row's error against its worst case" },
    };
  return {
    ...finite,
    [testName(quantity, 'element')]: {
      unit,
      gloss: 'each |error| against the worst case of its own',
    },
    [testName(quantity, 'spread')]: {
      unit,
      gloss: 'each |error| against what independent roundings do',
    },
    [testName(quantity, 'rms')]: {
      unit,
      gloss: 'root mean square error against what roundings do',
    },
  };
}

/** The words of every test of some quantities, by the tests' names. */
export function testWords(quantities: readonly Worded[]): Readonly<Record<string, TestWords>> {
  return Object.assign({ ...structureWords }, ...quantities.map(ownWords)) as Record<
    string,
    TestWords
  >;
}

/** "rms, head": a test, and the scope over which it is pooled. */
export function testLabel(test: string, scope?: SpreadScope | StructureScope): string {
  return scope === undefined ? test : `${test}, ${scope}`;
}
