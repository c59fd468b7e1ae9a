import { formats, round } from '../../../formats/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';

/** Facts of a row that a wrong LSE may be made of; natural units. */
interface LseFacts {
  readonly lse: number;
  readonly maximum: number;
  readonly scale: number;
}

interface LseSignature {
  readonly id: string;
  readonly statement: string;
  readonly value: (facts: LseFacts) => number;
}

/** Formulas that kernels have been seen to give for the LSE, or that one slip makes of it. */
const signatures: readonly LseSignature[] = [
  {
    id: 'lse-base-2',
    statement: 'the LSE is in base 2',
    value: ({ lse }) => lse / Math.LN2,
  },
  {
    id: 'lse-twice-ln2',
    statement: 'the LSE is multiplied by ln 2 twice',
    value: ({ lse }) => lse * Math.LN2,
  },
  {
    id: 'lse-sign',
    statement: 'the LSE has the wrong sign',
    value: ({ lse }) => -lse,
  },
  {
    id: 'lse-maximum-only',
    statement: 'the LSE is the row maximum, without the logarithm of the row sum',
    value: ({ maximum }) => maximum,
  },
  {
    id: 'lse-without-maximum',
    statement: 'the LSE is the logarithm of the row sum, without the row maximum',
    value: ({ lse, maximum }) => lse - maximum,
  },
  {
    id: 'lse-maximum-unscaled',
    statement: "the LSE's maximum is that of the unscaled scores",
    value: ({ lse, maximum, scale }) => maximum / scale + (lse - maximum),
  },
  {
    id: 'lse-mixed-bases',
    statement: "the LSE's logarithm of the row sum is in base 2, its maximum in natural units",
    value: ({ lse, maximum }) => maximum + (lse - maximum) / Math.LN2,
  },
  {
    id: 'lse-mixed-bases',
    statement: "the LSE's maximum is in base 2, its logarithm of the row sum in natural units",
    value: ({ lse, maximum }) => maximum / Math.LN2 + (lse - maximum),
  },
];

/** Fewest damaged rows whose LSE may be said to be off by one constant. */
const fewestRows = 8;
/** Rows that the place of a misplaced LSE is looked for with. */
const searched = 12;

/** A hypothesis about the LSE alone. */
function ofLse(
  id: string,
  statement: string,
  lse: (row: SampleRow) => number,
  more: Partial<Hypothesis> = {},
): Hypothesis {
  const predict = (row: SampleRow) => ({ ...row.correct, lse: lse(row) });
  return { id, technique: 'normalise', statement, predict, ...more };
}

/** One constant that all damaged rows are off by. */
function* offsets(damaged: readonly SampleRow[]): Generator<Hypothesis> {
  if (damaged.length < fewestRows) return;
  const errors = damaged.map(({ observedLse, correct }) => observedLse! - correct.lse);
  const mean = errors.reduce((a, b) => a + b, 0) / errors.length;
  if (!Number.isFinite(mean)) return;
  const size = Number(Math.abs(mean).toPrecision(3));
  const bits = mean / Math.LN2;
  const whole = Math.round(bits);
  const shift =
    whole !== 0 && Math.abs(bits - whole) < 1e-3
      ? `, ${Math.abs(whole)} powers of two: a shift of P that is not taken back`
      : '';
  yield ofLse(
    'lse-offset',
    `the LSE is ${size} too ${mean > 0 ? 'high' : 'low'}${shift}`,
    ({ correct }) => correct.lse + mean,
    { adjusted: true },
  );
}

/** One value on all damaged rows. */
function* constants(damaged: readonly SampleRow[]): Generator<Hypothesis> {
  const [first] = damaged;
  if (first === undefined || damaged.length < 2) return;
  const value = first.observedLse!;
  if (!Number.isFinite(value) || damaged.some(({ observedLse }) => observedLse !== value)) return;
  // Where the exact LSE is one number anyway, a constant LSE tells nothing.
  const exact = damaged.map(({ correct }) => correct.lse);
  const rounding = Math.max(...damaged.map(({ bound }) => bound.lse));
  if (Math.max(...exact) - Math.min(...exact) <= 2 * rounding) return;
  yield ofLse('lse-not-written', `the LSE is ${value}: not written`, () => value);
}

/** An LSE that a shorter format holds. */
function* shortFormats(damaged: readonly SampleRow[]): Generator<Hypothesis> {
  for (const name of ['fp16', 'bf16'] as const) {
    const held = (x: number) => round(formats[name], x);
    if (damaged.every(({ observedLse }) => held(observedLse!) === observedLse))
      yield ofLse('lse-narrow', `the LSE is rounded to ${name}`, ({ correct }) =>
        held(correct.lse),
      );
  }
}

/** The LSE of other rows. */
function* misplaced({ input, shape }: HypothesisContext, damaged: readonly SampleRow[]) {
  const [first] = damaged;
  // A sample of rows may lack those that others were mistaken for.
  if (first === undefined || damaged.length < 2 || input.problem.rows !== undefined) return;
  const exact = input.reference.quantities.lse.values;
  const near = ({ observedLse, bound }: SampleRow, source: number) =>
    Math.abs(exact[source] - observedLse!) <= bound.lse;
  const { queries } = shape;
  for (let source = 0; source < exact.length; source++) {
    const by = source - first.row;
    const sameHead = Math.floor(source / queries) === first.head;
    if (by === 0 || (!sameHead && by % queries !== 0) || !near(first, source)) continue;
    const from = ({ row, head }: SampleRow) => {
      const inside = sameHead
        ? Math.floor((row + by) / queries) === head
        : exact[row + by] !== undefined;
      return inside ? row + by : row;
    };
    const hits = damaged.slice(0, searched).filter((row) => near(row, from(row))).length;
    if (hits < Math.min(searched, damaged.length) - 1) continue;
    const side = by > 0 ? 'after' : 'before';
    yield ofLse(
      'lse-rows-permuted',
      sameHead
        ? `the LSE is that of the query ${Math.abs(by)} ${side} its own`
        : `the LSE is that of the head ${Math.abs(by / queries)} ${side} its own`,
      (row) => exact[from(row)],
      { local: true },
    );
  }
}

/** Faults of an LSE beside an output that is right. */
export const lseHypotheses: HypothesisFamily = function* (context) {
  const { sample, onlyLse, input } = context;
  if (!onlyLse) return;
  const damaged = sample.filter((row) => row.damaged);
  const { maximum } = input.reference;
  const { scale } = input.problem;
  for (const { id, statement, value } of signatures)
    yield ofLse(id, statement, ({ row, correct }) =>
      value({ lse: correct.lse, maximum: maximum[row], scale }),
    );
  yield* offsets(damaged);
  yield* constants(damaged);
  yield* shortFormats(damaged);
  yield* misplaced(context, damaged);
};
