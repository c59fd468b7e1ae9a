import type { ScaleFactors, Tensor } from '../../../formats/index.js';
import { scaledTensors, type Problem, type ScaledTensor } from '../../../problem/index.js';
import { RowReader } from '../row-reader.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

/** A wrong use of one tensor's factors. */
interface DescaleFault {
  readonly id: string;
  /** The fault in words that follow the tensor's name: "q_descale is not applied". */
  readonly what: string;
  /** The factors used instead; null where there is no such fault. */
  readonly factors: (
    own: ScaleFactors,
    problem: Problem,
    name: ScaledTensor,
  ) => ScaleFactors[] | null;
}

/** The axis of heads, counted from the last of four. */
const headAxis = -3;

/** Factors whose place `index` along an axis is taken from another. */
function rearranged(
  { values, shape, ...rest }: ScaleFactors,
  axis: number,
  from: (index: number, count: number) => number,
): ScaleFactors {
  const at = shape.length + axis;
  const inner = shape.slice(at + 1).reduce((product, size) => product * size, 1);
  const count = shape[at];
  const moved = values.map((_, i) => {
    const index = Math.floor(i / inner) % count;
    return values[i + (from(index, count) - index) * inner];
  });
  return { values: moved, shape, ...rest };
}

function alongAxis(axis: number, from: (index: number, count: number) => number) {
  return (own: ScaleFactors): ScaleFactors[] | null =>
    (own.shape.at(axis) ?? 1) < 2 ? null : [rearranged(own, axis, from)];
}

/** Factors of packed sequences, each that of the sequence behind it, the last that of the first. */
function ofNextSequence(own: ScaleFactors, { sequences = [] }: Problem, name: ScaledTensor) {
  const filled = sequences.filter((one) => (name === 'q' ? one.queries : one.keys) > 0);
  const first = filled.map((one) => (name === 'q' ? one.firstQuery : one.firstKey));
  if ((own.shape.at(-2) ?? 1) < 2 || first.length < 2) return null;
  const sequenceOf = (row: number) => first.findLastIndex((begin) => begin <= row);
  return [rearranged(own, -2, (row) => first[(sequenceOf(row) + 1) % first.length])];
}

/** The factors of the same name that another tensor has, where they fit. */
function ofOtherTensor(other: ScaledTensor): DescaleFault {
  return {
    id: 'descale-of-other-tensor',
    what: `is that of ${other.toUpperCase()}`,
    factors: (own, problem, name) => {
      const found = problem[other].scales?.factors.find((one) => one.name === own.name);
      if (name === other || found?.values.length !== own.values.length) return null;
      return [{ ...own, values: found.values }];
    },
  };
}

const faults: readonly DescaleFault[] = [
  { id: 'descale-missing', what: 'is not applied', factors: () => [] },
  { id: 'descale-twice', what: 'is applied twice', factors: (own) => [own, own] },
  {
    id: 'descale-inverted',
    what: 'divides, where it is to multiply',
    factors: (own) => [{ ...own, values: own.values.map((x) => 1 / x) }],
  },
  {
    id: 'descale-of-other-head',
    what: 'is that of the next head',
    factors: alongAxis(headAxis, (head, count) => (head + 1) % count),
  },
  {
    id: 'descale-of-other-head',
    what: 'is that of head 0 for all heads',
    factors: alongAxis(headAxis, () => 0),
  },
  {
    id: 'descale-of-other-batch',
    what: 'is that of the next batch entry',
    factors: alongAxis(headAxis - 1, (batch, count) => (batch + 1) % count),
  },
  { id: 'descale-of-other-batch', what: 'is that of the next sequence', factors: ofNextSequence },
  {
    id: 'descale-of-other-block',
    what: 'is that of the first block of rows for all rows',
    factors: (own, { sequences }) =>
      sequences === undefined ? alongAxis(headAxis + 1, () => 0)(own) : null,
  },
  {
    id: 'descale-of-other-column',
    what: 'is that of the next column',
    factors: alongAxis(-1, (column, count) => (column + 1) % count),
  },
  ofOtherTensor('k'),
  ofOtherTensor('q'),
  ofOtherTensor('v'),
];

/** The tensor with one of its factors replaced. */
function withFactors(tensor: Tensor, own: ScaleFactors, by: readonly ScaleFactors[]): Tensor {
  const { scales } = tensor;
  if (scales === undefined) return tensor;
  const factors = scales.factors.flatMap((one) => (one === own ? by : [one]));
  return { ...tensor, scales: { ...scales, factors } };
}

/** The largest factor by which elements grow, at least 1. */
function growthOf(own: ScaleFactors, by: readonly ScaleFactors[]): number {
  return own.values.reduce((most, x, i) => {
    const wrong = by.reduce((product, { values }) => product * values[i], 1);
    return x === 0 ? most : Math.max(most, wrong / x);
  }, 1);
}

/** Wrong factors of tensors, each in place of its own. */
interface Replacement {
  readonly name: ScaledTensor;
  readonly own: ScaleFactors;
  readonly by: readonly ScaleFactors[];
}

function hypothesis(
  { reader, shape }: HypothesisContext,
  replaced: readonly Replacement[],
  id: string,
  statement: string,
): Hypothesis {
  const { problem } = reader;
  const tensors = replaced.map(
    ({ name, own, by }) => [name, withFactors(problem[name], own, by)] as const,
  );
  const faulty = new RowReader({ ...problem, ...Object.fromEntries(tensors) }, shape);
  // The errors of 8-bit sums are far below their premises: scores that outgrow the problem's get no more noise.
  const ofValues = replaced
    .filter(({ name }) => name === 'v')
    .reduce((product, { own, by }) => product * growthOf(own, by), 1);
  return {
    id,
    technique: replaced.some(({ name }) => name === 'v') ? 'normalise' : 'scale-subtract',
    statement,
    predict: (row) => {
      const { range, floor } = row.bound;
      const bound = { ...row.bound, range: range * ofValues, floor: floor * ofValues };
      const scores = faulty.scores(row.row);
      const values = faulty.valuesOf(row.row, row.kv);
      return predictWeighted({ ...row, bound }, softmaxRow(scores, values));
    },
  };
}

/** Factors of q, k or v left out, applied twice, or those of another head, batch entry, sequence or block. */
export const descaleHypotheses: HypothesisFamily = function* (context) {
  const { problem } = context.reader;
  const scaled = scaledTensors.flatMap((name) =>
    (problem[name].scales?.factors ?? []).map((own) => ({ name, own })),
  );
  for (const { id, what, factors } of faults) {
    const wrong = scaled.flatMap(({ name, own }): Replacement[] => {
      const by = factors(own, problem, name);
      return by === null ? [] : [{ name, own, by }];
    });
    for (const one of wrong)
      yield hypothesis(context, [one], id, `${one.name}_${one.own.name} ${what}`);
    const both = wrong.filter(({ name, own }) => name !== 'v' && own.name === 'descale');
    if (both.length < 2) continue;
    const words = what.replace(/^is /, 'are ').replace(/^divides/, 'divide');
    yield hypothesis(context, both, id, `q_descale and k_descale ${words}`);
  }
};
