import { describe, expect, it } from 'vitest';
import { levels } from '../../../../oracles/index.js';
import {
  gradientQuantities,
  sharedQuantities,
  type JudgedGradientName,
} from '../../../../src/audit/gradients/gradient-quantities.js';
import {
  judgeGradients,
  type GivenJudged,
  type GradientJudgement,
} from '../../../../src/audit/gradients/judge-gradient.js';
import { noMeanErrors } from '../../../../src/audit/gradients/structure/mean-errors.js';
import { problemShape } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { bellShaped } from '../gradient-case.js';
import { drawFrom } from './random-pairs.js';

const [batch, heads, kvHeads, queries, keys, qkDim, vDim] = [2, 4, 2, 5, 6, 3, 2] as const;
const rate = 1e-3;
/** The deviation of each element. */
const sigma = 2 ** -10;

const [dq, dk, dv] = gradientQuantities;
const [dbias, dsink] = sharedQuantities;

/** Heads of a gradient over all batch entries, the rows of each and their columns. */
const sizes = {
  dq: [batch * heads, queries, qkDim],
  dk: [batch * kvHeads, keys, qkDim],
  dv: [batch * kvHeads, keys, vDim],
  dbias: [heads, queries, keys],
  dsink: [heads, 1, 1],
} as const;
const lengthOf = (name: JudgedGradientName) => sizes[name].reduce<number>((a, b) => a * b, 1);

const problem = filledProblem(
  { batch, heads, kvHeads, queries, keys, dim: qkDim, vDim },
  bellShaped(3),
);
const shape = problemShape(problem);

type Change = (element: {
  shift: Float64Array;
  exact: Float64Array;
  values: Float64Array;
  total: Float64Array;
}) => void;

/** The results for gradients that are given, but for what is changed. */
function judged(
  given: readonly (typeof dq | typeof dk | typeof dv | typeof dbias | typeof dsink)[],
  changes: Partial<Record<JudgedGradientName, Change>> = {},
  more: Partial<GradientJudgement> = {},
  undefinedRow = -1,
) {
  const { between } = drawFrom(5);
  const gradients = given.map(({ name }) => {
    const numbers = (make: () => number) => Float64Array.from({ length: lengthOf(name) }, make);
    const exact = numbers(() => between(0.5, 2));
    const shift = numbers(() => between(-0.1, 0.1));
    const values = exact.map((x, i) => x + shift[i]);
    const total = numbers(() => 0.25);
    changes[name]?.({ shift, exact, values, total });
    const none = new Float64Array(values.length);
    const bound = {
      total,
      shift,
      systematic: none,
      known: none,
      deviation: none.map(() => sigma),
      reach: none,
      operands: none,
      byOthers: [],
      apart: null,
    };
    const own =
      name === 'dsink'
        ? { ...shape, batch: 1, queries: 1 }
        : name === 'dbias'
          ? { ...shape, batch: 1 }
          : shape;
    return {
      name,
      values,
      measured: { shape: own, exact: { values: exact, magnitude: exact }, bound },
    };
  });
  const rows = batch * heads * queries;
  const level = new Uint8Array(rows).fill(levels.indexOf('fp64'));
  const lse = new Float64Array(rows);
  if (undefinedRow >= 0)
    [level[undefinedRow], lse[undefinedRow]] = [levels.indexOf('special'), -Infinity];
  const judgement = {
    problem,
    measured: {
      shape,
      reference: { level, quantities: { lse: { values: lse } } },
      gradients: Object.fromEntries(gradients.map(({ name, measured }) => [name, measured])),
      techniques: { dq: 'the table of dQ' },
    },
    together: {
      dk: noMeanErrors(batch * kvHeads, qkDim),
      dv: noMeanErrors(batch * kvHeads, vDim),
    },
    falseAlarmRate: rate,
    ...more,
  } as unknown as GradientJudgement;
  const all = given.map((quantity, i): GivenJudged => {
    return { quantity, format: 'fp64', values: gradients[i].values };
  });
  return judgeGradients(all, judgement);
}

/** One element changed. */
const at =
  (index: number, by: number): Change =>
  ({ values }) => {
    values[index] += by;
  };

const three = [dq, dk, dv] as const;

describe('gradients that are judged', () => {
  it('are judged in their order, beside exact ones that the stored forward has shifted', () => {
    const found = judged([...three, dbias, dsink]);
    expect(found.map(({ quantity }) => quantity.name)).toEqual([
      'dq',
      'dk',
      'dv',
      'dbias',
      'dsink',
    ]);
    expect(found.map((one) => one.heads)).toEqual([heads, kvHeads, kvHeads, heads, heads]);
    for (const { error, elements, spread, quantity, values } of found) {
      expect(elements.elements).toBe(lengthOf(quantity.name as JudgedGradientName));
      expect(elements.worstRatio).toBe(0);
      expect(error.absolute.max).toBe(0);
      expect(spread.measured).toBe(0);
      expect(values).toHaveLength(elements.elements);
    }
    expect(found.map(({ techniques }) => techniques)).toEqual([
      'the table of dQ',
      null,
      null,
      null,
      null,
    ]);
    expect(found.map(({ isSample }) => isSample)).toEqual(Array(5).fill(false));
    expect(found.map(({ lost }) => lost.elements)).toEqual(Array(5).fill(0));
  });

  it('have every element within its own bound', () => {
    for (const [index, name] of (['dq', 'dk', 'dv', 'dbias'] as const).entries()) {
      const element = lengthOf(name) - 2;
      const [inside, beyond] = [0.99, 1.01].map(
        (share) => judged([...three, dbias], { [name]: at(element, share * 0.25) })[index].elements,
      );
      expect([inside.outside, beyond.outside]).toEqual([0, 1]);
      expect(beyond.worst?.at.head).toBe(
        (sizes[name][0] - 1) % (name === 'dk' || name === 'dv' ? kvHeads : heads),
      );
    }
  });

  it('have half of the rate for the spread, shared by all', () => {
    for (const given of [[dq], three] as const)
      for (const [index, { name }] of given.entries()) {
        const { spread } = judged(given, { [name]: at(0, 2 * sigma) })[index];
        const [count, rows, columns] = sizes[name];
        // Hsu, Kakade and Zhang's tail of a sum of squares, of rows that err apart.
        const t = Math.log((8 * count) / (rate / 2 / given.length));
        const ofRow = columns * sigma ** 2;
        const most = rows * ofRow + 2 * Math.sqrt(rows * ofRow ** 2 * t) + 2 * ofRow * t;
        const ofHead = spread.results.find(({ scope }) => scope === 'head')!;
        expect(ofHead.limit / Math.sqrt(most / rows / columns)).toBeCloseTo(1, 9);
        // Of an element: √(2 ln(4 n / rate)) deviations.
        const own =
          sigma * Math.sqrt(2 * Math.log((4 * lengthOf(name)) / (rate / 2 / given.length)));
        const beyond = (share: number) =>
          judged(given, { [name]: at(1, share * own) })[index].spread.outside;
        expect([beyond(0.99), beyond(1.01)]).toEqual([0, 1]);
      }
  });

  it('have the other half for sums, of which each counts', () => {
    const counts = three.map(({ name }) => {
      const [count, , columns] = sizes[name];
      // A tile, a head, and every column.
      return count * (1 + 1 + columns);
    });
    for (const given of [[dq], [dk, dv], three] as const) {
      const all = given.reduce((sum, one) => sum + counts[three.indexOf(one)], batch * kvHeads);
      const deviations = Math.sqrt(2 * Math.log((2 * all) / (rate / 2)));
      for (const [index, { name }] of given.entries()) {
        const { structure } = judged(given, { [name]: at(0, 2 * sigma) })[index];
        const sum = structure.find(({ test }) => test === 'sum')!;
        expect(sum.statistic).toBeCloseTo(2 * sigma, 9);
        expect(sum.threshold / (deviations * sigma * Math.sqrt(sizes[name][1]))).toBeCloseTo(1, 9);
      }
    }
    // Numbers have no sums, and do not count.
    const [withSink, without] = [[...three, dsink], three].map((given) => judged(given)[0]);
    expect(withSink.structure).toEqual(without.structure);
    expect(judged([dsink])[0].structure).toEqual([]);
  });

  it('have errors that all keys share in sums of dK and of dV, each its own', () => {
    const much = (columns: number) => ({
      ...noMeanErrors(batch * kvHeads, columns),
      columns: new Float64Array(batch * kvHeads * columns).fill(1),
    });
    const none = { dk: noMeanErrors(4, qkDim), dv: noMeanErrors(4, vDim) };
    const sumsOf = (together: GradientJudgement['together']) =>
      judged(three, {}, { together }).map(
        ({ structure }) => structure.find(({ test }) => test === 'sum')!.threshold > 1,
      );
    expect(sumsOf(none)).toEqual([false, false, false]);
    expect(sumsOf({ ...none, dk: much(qkDim) })).toEqual([false, true, false]);
    expect(sumsOf({ ...none, dv: much(vDim) })).toEqual([false, false, true]);
  });

  it('have ⟨Q, dQ⟩ beside ⟨K, dK⟩ where both are given whole', () => {
    const pairs = (given: Parameters<typeof judged>[0], isSample: boolean) =>
      judged(given, {}, { isSample }).map(({ structure }) =>
        structure.some(({ test }) => test === 'pairing'),
      );
    expect(pairs(three, false)).toEqual([false, true, false]);
    expect(pairs(three, true)).toEqual([false, false, false]);
    expect(pairs([dq, dv], false)).toEqual([false, false]);
    expect(pairs([dk, dv], false)).toEqual([false, false]);
  });

  it('are judged by the worst case alone in rows of exact infinities or NaNs', () => {
    const row = 7;
    for (const [index, { name }] of three.entries()) {
      const [, , columns] = sizes[name];
      const special: Change = ({ exact, values }) => {
        exact[row * columns] = Infinity;
        values[row * columns] = Infinity;
        values[row * columns + 1] += 0.9 * 0.25;
      };
      const [found, plain] = [special, at(row * columns + 1, 0.9 * 0.25)].map(
        (change) => judged(three, { [name]: change })[index],
      );
      expect([found.spread.outside, plain.spread.outside]).toEqual([0, 1]);
      expect(found.elements).toMatchObject({ nonFinite: 0, outside: 0 });
      const ofNext = (found: (typeof plain)['spread']) =>
        found.results.map(({ measured }) => measured);
      expect(ofNext(found.spread)).toEqual([0, 0]);
    }
  });

  it('may be NaN in dQ of a row that sees nothing but scores of −∞, and nowhere else', () => {
    const row = 7;
    for (const [index, { name }] of three.entries()) {
      const [, , columns] = sizes[name];
      const isNaN = (which: number): Change => at(which * columns + 1, NaN);
      const bad = (which: number, undefinedRow: number) =>
        judged(three, { [name]: isNaN(which) }, {}, undefinedRow)[index].elements.nonFinite;
      expect(bad(row, row)).toBe(name === 'dq' ? 0 : 1);
      expect(bad(row + 1, row)).toBe(1);
      expect(bad(row, -1)).toBe(1);
    }
  });

  it('lose to underflow what is within their bound of zero, and would not be without it', () => {
    const small: Change = ({ shift, exact, values, total }) => {
      shift.fill(0);
      exact.fill(2 ** -100);
      values.fill(2 ** -100);
      total.fill(2 ** -99);
      // Two that are larger than their bounds.
      [exact[1], exact[2]] = [1, -1];
    };
    const least = (of: number) => () =>
      ({
        gradients: {
          dk: { bound: { total: new Float64Array(lengthOf('dk')).fill(of) } },
        },
      }) as unknown as ReturnType<NonNullable<GradientJudgement['losses']>['without']>;
    const lost = (without: number) =>
      judged(
        three,
        { dk: small },
        { losses: { underflow: 2 ** -120, without: least(without) } },
      ).map((one) => one.lost);
    const none = { elements: 0, isAll: false };
    expect(lost(2 ** -101)).toEqual([none, { elements: lengthOf('dk') - 2, isAll: false }, none]);
    expect(lost(2 ** -99)).toEqual([none, none, none]);
  });

  it('are refused where one was not measured', () => {
    const sample = judged(three);
    expect(sample).toHaveLength(3);
    expect(() =>
      judgeGradients([{ quantity: dsink, format: 'fp64', values: new Float64Array(heads) }], {
        problem,
        measured: { shape, gradients: {}, reference: {}, techniques: {} },
        together: {},
        falseAlarmRate: rate,
      } as unknown as GradientJudgement),
    ).toThrow('dsink is judged, and was not measured');
  });
});
