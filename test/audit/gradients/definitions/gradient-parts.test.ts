import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { givenGradients } from '../../../../src/audit/gradients/given-gradients.js';
import {
  planGradientParts,
  unsampled,
  type GradientPart,
} from '../../../../src/audit/gradients/gradient-samples.js';
import { prepareGradients } from '../../../../src/audit/gradients/plan-gradients.js';
import { chooseKeys, chooseRows } from '../../../../src/audit/rows/index.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import { problemShape, type Tensor } from '../../../../src/problem/index.js';
import { filledProblem, sequencesOf, tensor } from '../../../setup/problems.js';
import { drawFrom } from './random-pairs.js';

const [heads, kvHeads, queries, keys, qkDim, vDim] = [4, 2, 9, 11, 3, 2] as const;

const names = ['dq', 'dk', 'dv', 'dbias'] as const;

const drawns = fc.record({
  seed: fc.nat(1e6),
  isPacked: fc.boolean(),
  /** Rows and keys of each head; null for no sample, and the number of all for one that is all. */
  rows: fc.constantFrom(null, 1, 4, queries),
  keys: fc.constantFrom(null, 1, 5, keys),
  given: fc.subarray([...names], { minLength: 1 }),
  hasForward: fc.boolean(),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

function caseOf({ seed, isPacked, given, hasForward }: Drawn) {
  const { between } = drawFrom(seed);
  const batch = isPacked ? 1 : 2;
  const numbers = (shape: readonly number[]) => tensor('fp32', shape, () => between(-1, 1));
  const sequences = sequencesOf([
    [4, 5],
    [5, 6],
  ]);
  const problem = filledProblem(
    { batch, heads, kvHeads, queries, keys, dim: qkDim, vDim, format: 'fp32' },
    () => between(-1, 1),
    isPacked ? { sequences } : { bias: numbers([queries, keys]) },
  );
  const all = {
    dq: numbers([batch, heads, queries, qkDim]),
    dk: numbers([batch, kvHeads, keys, qkDim]),
    dv: numbers([batch, kvHeads, keys, vDim]),
    dbias: numbers([queries, keys]),
  };
  const some = given.filter((name) => name !== 'dbias' || !isPacked);
  const tensors = {
    dout: numbers([batch, heads, queries, vDim]),
    ...(hasForward && {
      out: numbers([batch, heads, queries, vDim]),
      lse: numbers([batch, heads, queries]),
    }),
    ...Object.fromEntries(some.map((name) => [name, all[name]] as const)),
  };
  return { batch, problem, tensors, some, shape: problemShape(problem) };
}

/** Some rows of each head of a tensor, by their numbers in it. */
function taken(of: Tensor, count: number, rowsOfHead: number, selection: Int32Array): number[] {
  const values = decodeTensor(of);
  const columns = values.length / count / rowsOfHead;
  const ofHead = selection.length / count;
  return [...selection].flatMap((row, i) => {
    const first = (Math.floor(i / ofHead) * rowsOfHead + row) * columns;
    return [...values.subarray(first, first + columns)];
  });
}

/** What a part judges, as plain numbers. */
function described(part: GradientPart, all: Parameters<GradientPart['takenOf']>[0]) {
  const { dout, out, lse } = part.tensors;
  return {
    names: [...part.names],
    isSample: part.isSample,
    keys: part.keys,
    rows: part.problem.rows === undefined ? null : [...part.problem.rows.queries],
    given: part.takenOf(all).map(({ quantity, values }) => [quantity.name, [...values]]),
    forward: [dout, out, lse].map((one) => (one ? [...decodeTensor(one)] : null)),
  };
}

describe('the parts of gradients that are judged', () => {
  it('are dQ of a sample of rows, and dK and dV of a sample of keys', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const { batch, problem, tensors, some, shape } = caseOf(drawn);
        fc.pre(some.length > 0);
        const ofHead = drawn;
        const requests = {
          rows: ofHead.rows === null ? null : { rows: batch * heads * ofHead.rows, seed: 5 },
          keys: ofHead.keys === null ? null : { keys: batch * kvHeads * ofHead.keys, seed: 5 },
        };
        const all = givenGradients(problem, tensors);
        const plan = planGradientParts(problem, tensors, requests);
        const isWhole = requests.rows === null && requests.keys === null;
        const rows = requests.rows && chooseRows(problem, shape, requests.rows);
        const chosen = requests.keys && chooseKeys(problem, shape, requests.keys);
        expect(plan.rows).toEqual(rows);
        expect(plan.keys).toEqual(chosen);

        const given: Readonly<Partial<Record<string, Tensor>>> = tensors;
        const forward = (selection: Int32Array | null) =>
          [tensors.dout, given.out, given.lse].map((one) => {
            if (one === undefined) return null;
            return selection === null
              ? [...decodeTensor(one)]
              : taken(one, batch * heads, queries, selection);
          });
        const valuesOf = (of: readonly string[], selection: Int32Array | null) =>
          some
            .filter((name) => of.includes(name))
            .map((name) => {
              const [count, size] =
                name === 'dq' ? [batch * heads, queries] : [batch * kvHeads, keys];
              const values =
                selection === null
                  ? [...decodeTensor(given[name]!)]
                  : taken(given[name]!, count, size, selection);
              return [name, values];
            });
        const part = (of: string[], ofRows: Int32Array | null, sample: typeof chosen) => ({
          names: of,
          isSample: ofRows !== null || sample !== null,
          keys: sample,
          rows: ofRows && [...ofRows],
          given: valuesOf(of, ofRows ?? sample?.selection ?? null),
          forward: forward(ofRows),
        });
        const wanted = isWhole
          ? [part(['dq', 'dk', 'dv', 'dbias', 'dsink'], null, null)]
          : [
              ...(requests.rows ? [part(['dq'], rows?.selection.queries ?? null, null)] : []),
              ...(requests.keys ? [part(['dk', 'dv'], null, chosen)] : []),
            ];
        expect(plan.parts.map((one) => described(one, all))).toEqual(wanted);

        const judged = wanted.flatMap((one) => one.names);
        const prose = { dq: 'dQ', dk: 'dK', dv: 'dV', dbias: 'dBias' } as const;
        const list = (of: readonly (typeof names)[number][]) =>
          of
            .map((name) => prose[name])
            .join(', ')
            .replace(/, (?=[^,]*$)/, ' and ');
        const left = some.filter((name) => !judged.includes(name));
        const ofKeys = some.filter((name) => name === 'dk' || name === 'dv');
        const rest = (size: number, taken: number) => `${size - taken} of ${size}`;
        expect(unsampled(plan, all)).toEqual([
          ...(left.length > 0
            ? [`${list(left)}, since a sample of rows judges dQ, and one of keys dK and dV`]
            : []),
          ...(rows && some.includes('dq')
            ? [
                `dQ of ${rest(batch * heads * queries, rows.selection.queries.length)} rows, which are not in the sample`,
              ]
            : []),
          ...(chosen && ofKeys.length > 0
            ? [
                `${list(ofKeys)} of ${rest(batch * kvHeads * keys, chosen.selection.length)} keys, which are not in the sample`,
              ]
            : []),
        ]);
      }),
      { numRuns: 60 },
    );
  });

  it('are those with a gradient, and know the attention of all rows, or of the sample alone', () => {
    const drawn = { seed: 1, isPacked: false, given: [...names], hasForward: false } as const;
    const { problem, tensors } = caseOf({ ...drawn, given: [...names], rows: 4, keys: 5 });
    const reference = { of: 'this problem' } as never;
    const [rows, keys] = [
      { rows: 32, seed: 1 },
      { keys: 20, seed: 1 },
    ];
    const partsOf = (requests: object, given: object = tensors) => {
      const all = { ...tensors, ...given };
      const { parts } = prepareGradients(problem, all, { ...requests, reference });
      return parts.map((part) => [
        part.given.map(({ quantity }) => quantity.name).join(),
        part.reference,
      ]);
    };
    expect(partsOf({})).toEqual([['dq,dk,dv,dbias', reference]]);
    expect(partsOf({ rows })).toEqual([['dq', reference]]);
    expect(partsOf({ keys })).toEqual([['dk,dv', reference]]);
    // With both, what is known is of the rows.
    expect(partsOf({ rows, keys })).toEqual([
      ['dq', reference],
      ['dk,dv', null],
    ]);
    expect(partsOf({ rows, keys }, { dq: null })).toEqual([['dk,dv', null]]);
    expect(partsOf({ rows, keys }, { dk: null, dv: null })).toEqual([['dq', reference]]);
    const sample = { ...problem, rows: { of: queries, queries: new Int32Array(8) } };
    expect(() => planGradientParts(sample, tensors, {})).toThrow('is a sample of rows already');
    expect(() => partsOf({ rows }, { dq: null })).toThrow('but of these none was given');
  });
});
