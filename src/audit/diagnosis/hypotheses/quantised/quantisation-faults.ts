import {
  largestOfGroups,
  quantiseIntegers,
  rowGroups,
  smoothKeys,
  type IntegerRule,
  type Integers,
  type PremiseDeclaration,
  type QuantisationSteps,
  type RowGroups,
} from '../../../../../kernels/index.js';
import { formats, round } from '../../../../formats/index.js';
import type { Problem } from '../../../../problem/index.js';

/** A wrong step of the quantisation of Q and K. */
export interface QuantisationFault {
  readonly id: string;
  readonly statement: string;
  /** The declarations that a kernel with the fault obeys instead; left out: its own. */
  readonly declared?: Partial<PremiseDeclaration>;
  readonly steps?: QuantisationSteps;
  /** Whether the problem can show it; left out: always. */
  readonly applies?: (declared: PremiseDeclaration, problem: Problem) => boolean;
}

const isInteger = ({ qk }: PremiseDeclaration) => qk === 'int8' || qk === 'int4';
const isSmoothed = ({ smoothing }: PremiseDeclaration) => smoothing === 'keys';

/** The integers of a head with other factors, or other integers for the same. */
function changed(
  change: (own: Integers, values: Float64Array, dim: number, groups: RowGroups) => Integers,
): typeof quantiseIntegers {
  return (values, dim, groups, rule) =>
    change(quantiseIntegers(values, dim, groups, rule), values, dim, groups);
}

/** The integers of numbers that another rule rounds, with the factors of each group. */
function roundedBy(
  integerOf: (quotient: number, rule: IntegerRule) => number,
  divisor: (rule: IntegerRule) => number = ({ largest }) => largest,
): typeof quantiseIntegers {
  return (values, dim, groups, rule) => {
    const factors = largestOfGroups(values, dim, groups).map((x) => Math.fround(x / divisor(rule)));
    const elements = values.map((x, at) => {
      const factor = factors[groups.of[Math.floor(at / dim)]];
      return factor === 0 ? 0 : integerOf(Math.fround(x / factor), rule) + 0;
    });
    return { elements, factors };
  };
}

const halfAway = (x: number) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);

/** Factors from the first half of each group's rows, so that larger numbers of the second saturate. */
const ofHalf: typeof quantiseIntegers = (values, dim, groups, rule) => {
  const sizes = new Int32Array(groups.count);
  groups.of.forEach((group) => sizes[group]++);
  const met = new Int32Array(groups.count);
  const first = values.slice();
  groups.of.forEach((group, row) => {
    met[group]++;
    if (sizes[group] > 1 && 2 * met[group] > sizes[group])
      first.fill(0, row * dim, (row + 1) * dim);
  });
  const factors = largestOfGroups(first, dim, groups).map((x) => Math.fround(x / rule.largest));
  const elements = values.map((x, at) => {
    const factor = factors[groups.of[Math.floor(at / dim)]];
    if (factor === 0) return 0;
    const most = rule.largest;
    return Math.max(-most - 1, Math.min(most, halfAway(Math.fround(x / factor)))) + 0;
  });
  return { elements, factors };
};

/** Means of K less which the keys are taken. */
function smoothedBy(
  meanAt: (
    own: Float64Array,
    head: number,
    t: number,
    shape: { heads: number; keys: number },
  ) => number,
  dimOf: (mean: Float64Array, heads: number) => number = (mean, heads) => mean.length / heads,
): typeof smoothKeys {
  return (problem, shape) => {
    const own = smoothKeys(problem, shape);
    const heads = shape.batch * shape.kvHeads;
    const dim = dimOf(own.mean, heads);
    const format = formats[problem.k.format];
    const mean = own.mean.map((_, at) =>
      round(format, meanAt(own.mean, Math.floor(at / dim), at % dim, { heads, keys: shape.keys })),
    );
    const keys = own.keys.map((x, at) => {
      const head = Math.floor(at / (shape.keys * dim));
      const t = at % dim;
      // The keys themselves, but for their rounding, and less the other mean.
      return round(format, x + own.mean[head * dim + t] - mean[head * dim + t]);
    });
    return { mean, keys };
  };
}

/** The factors of each group replaced by those of another. */
function factorsFrom(source: (group: number, count: number) => number): typeof quantiseIntegers {
  return changed(({ elements, factors }) => ({
    elements,
    factors: factors.map((own, group) => factors[source(group, factors.length)] ?? own),
  }));
}

/** Elements along the head dimension taken from another place. */
function movedElements(from: (t: number) => number): typeof quantiseIntegers {
  return changed(({ elements, factors }, _, dim) => ({
    factors,
    elements: elements.map((x, at) => elements[at - (at % dim) + from(at % dim)] ?? x),
  }));
}

/** One of Q and K quantised otherwise: the queries are met first. */
function ofOne(name: 'q' | 'k', quantise: typeof quantiseIntegers): QuantisationSteps {
  let current: 'q' | 'k' = 'q';
  return {
    groups: (which, ...rest) => {
      current = which;
      return rowGroups(which, ...rest);
    },
    quantise: (...given) => (current === name ? quantise(...given) : quantiseIntegers(...given)),
  };
}

const lastPadding = 64;

/** Faults of quantising kernels, by the steps that they take otherwise. */
export const quantisationFaults: readonly QuantisationFault[] = [
  {
    id: 'keys-not-smoothed',
    statement: 'K is quantised without its mean subtracted',
    declared: { smoothing: 'none' },
    applies: isSmoothed,
  },
  {
    id: 'mean-of-other-head',
    statement: 'the mean subtracted from K is that of the next head',
    steps: {
      smoothed: smoothedBy((own, head, t, { heads }) => {
        const dim = own.length / heads;
        return own[((head + 1) % heads) * dim + t];
      }),
    },
    applies: isSmoothed,
  },
  {
    id: 'mean-over-padding',
    statement: `the mean of K is taken over the keys and those that fill the last ${lastPadding}`,
    steps: {
      smoothed: smoothedBy((own, head, t, { heads, keys }) => {
        const dim = own.length / heads;
        return (own[head * dim + t] * keys) / (Math.ceil(keys / lastPadding) * lastPadding);
      }),
    },
    applies: (declared, { k }) => isSmoothed(declared) && (k.shape.at(-2) ?? 0) % lastPadding !== 0,
  },
  {
    id: 'integers-truncated',
    statement: 'Q and K are truncated to integers, not rounded',
    steps: { quantise: roundedBy((x) => Math.trunc(x)) },
    applies: isInteger,
  },
  {
    id: 'integer-wraps',
    statement:
      'the largest numbers of Q and K become one more than the largest integer and wrap to the smallest',
    steps: {
      quantise: roundedBy(
        (x, { largest }) => {
          const integer = halfAway(x);
          return integer > largest ? integer - 2 * (largest + 1) : integer;
        },
        ({ largest }) => largest + 1,
      ),
    },
    applies: isInteger,
  },
  {
    id: 'amax-of-half',
    statement:
      'factors are those of the first half of the rows that share them; larger numbers saturate',
    steps: { quantise: ofHalf },
    applies: isInteger,
  },
  ...(['q', 'k'] as const).flatMap((name): QuantisationFault[] => [
    {
      id: 'factor-of-next-group',
      statement: `the factors of ${name.toUpperCase()} are those of the next group of rows`,
      steps: ofOne(
        name,
        factorsFrom((group, count) => Math.min(group + 1, count - 1)),
      ),
      applies: isInteger,
    },
    {
      id: 'factor-groups-mapped',
      statement: `the factors of ${name.toUpperCase()} are mapped to the wrong threads`,
      steps: ofOne(
        name,
        factorsFrom((group, count) => {
          const threads = name === 'q' ? 8 : 4;
          const own = group % threads;
          // Halves and remainders of a thread's number exchanged.
          const other = (own % 2) * (threads / 2) + Math.floor(own / 2);
          return Math.min(group - own + other, count - 1);
        }),
      ),
      applies: (declared) => isInteger(declared) && declared.qkGroups === 'threads',
    },
    {
      id: 'nibbles-swapped',
      statement: `the two integers of each byte of ${name.toUpperCase()} are swapped`,
      steps: ofOne(
        name,
        movedElements((t) => t ^ 1),
      ),
      applies: ({ qk }) => qk === 'int4',
    },
  ]),
  {
    id: 'log2e-missing',
    statement: 'the scale is folded into Q without log2 e',
    steps: {
      entering: (name, values) =>
        name === 'q' ? values.map((x) => Math.fround(x / Math.LOG2E)) : values,
    },
    applies: ({ qkScale }) => qkScale !== 'scores',
  },
  {
    id: 'scale-twice',
    statement: 'the scale is folded into Q, and multiplies the scores once more',
    declared: { qkScale: 'folded' },
    applies: ({ qkScale }) => qkScale === 'scores',
  },
];
