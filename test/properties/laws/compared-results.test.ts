import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laws, type KernelPromises, type LawId } from '../../../properties/index.js';
import { describePlace } from '../../../src/audit/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { upTo } from '../gradients/drawn-case.js';
import { drawnProblem, tryByHand, type DefinedRun, type DrawnProblemKinds } from './law-by-hand.js';

/** A row, and where it has the same results in the first run; null where it is compared with nothing. */
type Row = readonly [batch: number, head: number, query: number];

/** What a law is told of. */
interface Told {
  readonly choice: number;
  readonly given: Problem;
  readonly shape: ProblemShape;
  readonly runs: readonly DefinedRun[];
}

/** A law to the last bit, in some of its forms, and what a row of its last run is compared with. */
interface Comparison {
  readonly law: LawId;
  readonly isForm?: (choice: number) => boolean;
  readonly kinds?: DrawnProblemKinds;
  /** Whether the law says nothing of a problem; default never. */
  readonly isIdle?: (told: Told) => boolean;
  /** The row of the first run that has the same results; null for none. */
  readonly origin: (row: Row, told: Told, column: number | null) => Row | null;
  /** The factor of O; default 1. */
  readonly factor?: (choice: number) => number;
}

const same = (row: Row): Row => row;
const rowAt = ({ heads, queries }: ProblemShape, [b, h, i]: Row) => (b * heads + h) * queries + i;
const rowsOf = ({ batch, heads, queries }: ProblemShape): Row[] =>
  upTo(batch).flatMap((b) => upTo(heads).flatMap((h) => upTo(queries).map((i): Row => [b, h, i])));

/** The keys that the query of a choice sees, in some batch and head. */
function seenBy(choice: number, shape: ProblemShape, visible: DefinedRun['visible']) {
  const query = Math.floor((choice * shape.queries) / 32);
  const rows = rowsOf(shape).filter(([, , i]) => i === query);
  return new Set(rows.flatMap((row) => visible[rowAt(shape, row)]));
}

/** Whether a result may depend on the element that the second run has a special value in place of; of the LSE for column null. */
function isReached([b, h, i]: Row, column: number | null, runs: readonly DefinedRun[]): boolean {
  const { groupSize, queries, keys, heads, kvHeads } = problemShape(runs[0].problem);
  for (const name of ['q', 'k', 'v'] as const) {
    const [usual, planted] = runs.map(({ problem }) => decodeTensor(problem[name]));
    const at = planted.findIndex((x, index) => !Object.is(x, usual[index]));
    if (at < 0) continue;
    const width = runs[0].problem[name].shape[3];
    const place = Math.floor(at / width);
    if (name === 'q') return place === (b * heads + h) * queries + i;
    const isOfGroup = Math.floor(place / keys) === b * kvHeads + Math.floor(h / groupSize);
    return isOfGroup && (name === 'k' || column === at % width);
  }
  throw new Error('nothing is planted');
}

const exponents = [1, -1, 2, -2, 3, -3, 5, -5, 9, -9, 20, -20];
const added = [0, 1, 0, 5, 0, 127, 0, 128];

const ofHiddenKeys = ['masked-keys', 'masked-nan-keys', 'masked-nan-values'] as const;

const comparisons: readonly Comparison[] = [
  ...ofHiddenKeys.flatMap((law) =>
    [{ masked: true }, { pairs: true }].map((kinds): Comparison => ({
      law,
      kinds,
      isIdle: ({ choice, given, shape }) =>
        seenBy(choice, shape, definedAttention(given).visible).size === shape.keys,
      origin: (row, { choice, shape, runs: [{ visible }] }) => {
        const seen = seenBy(choice, shape, visible);
        return visible[rowAt(shape, row)].every((key) => seen.has(key)) ? row : null;
      },
    })),
  ),
  { law: 'determinism', kinds: { masked: true, packed: true }, origin: same },
  {
    law: 'query-order',
    isForm: (choice) => choice === 0,
    kinds: { pairs: true },
    isIdle: ({ shape }) => shape.queries === 1,
    origin: ([b, h, i], { shape }) => [b, h, shape.queries - 1 - i],
  },
  {
    law: 'decode-equals-prefill',
    isForm: (choice) => choice % 2 === 0,
    kinds: { masked: true },
    isIdle: ({ shape }) => shape.queries === 1,
    origin: ([b, h, i], { choice, shape: { queries } }) => {
      const count = 1 + Math.floor(((choice / 2) * (queries - 1)) / 16);
      return [b, h, queries - count + i];
    },
  },
  {
    law: 'decode-equals-prefill',
    isForm: (choice) => choice % 2 === 1,
    kinds: { masked: true },
    isIdle: ({ choice, given, shape: { queries, keys } }) => {
      const query = Math.floor((((choice - 1) / 2) * queries) / 16);
      const behind = query + keys - queries + 1;
      return !given.causal || behind < 1 || queries === 1;
    },
    origin: ([b, h], { choice, shape: { queries } }) => [
      b,
      h,
      Math.floor((((choice - 1) / 2) * queries) / 16),
    ],
  },
  {
    law: 'heads-independent',
    isForm: (choice) => choice === 0,
    kinds: { masked: true, pairs: true },
    isIdle: ({ shape: { batch, heads } }) => batch * heads === 1,
    origin: ([b, h, i], { shape: { batch, heads } }) => [batch - 1 - b, heads - 1 - h, i],
  },
  {
    law: 'grouped-heads',
    kinds: { masked: true, pairs: true },
    isIdle: ({ shape }) => shape.groupSize === 1,
    origin: same,
  },
  {
    law: 'padding',
    isForm: (choice) => choice % 2 === 0,
    kinds: { masked: true },
    isIdle: ({ given: { causal, window }, shape: { queries, keys } }) =>
      !(causal || window?.right === 0) || queries === 1 || keys === 1,
    origin: same,
  },
  {
    law: 'padding',
    isForm: (choice) => choice % 2 === 1,
    kinds: { masked: true },
    isIdle: ({ given: { window }, shape: { queries, keys } }) =>
      window === null || window.left - (keys - queries) >= queries,
    origin: ([b, h, i], { choice, given: { window }, shape: { queries, keys } }) => {
      const first = Math.max(0, window!.left - (keys - queries));
      const before = added[(choice - 1) / 2];
      return i < before ? null : [b, h, i - before + first];
    },
  },
  { law: 'causal-is-window', kinds: { masked: true }, origin: same },
  {
    law: 'mask-tensors',
    kinds: { masked: true },
    origin: same,
  },
  {
    law: 'neutral-features',
    kinds: { masked: true },
    // The eighth of the features that are promised: one packed sequence.
    isIdle: ({ choice, shape }) => choice === 7 && shape.batch > 1,
    origin: same,
  },
  {
    law: 'sequences-alone',
    isForm: (choice) => choice % 3 === 0,
    kinds: { masked: true },
    isIdle: ({ shape }) => shape.batch === 1,
    origin: ([, h, i], { choice, shape: { batch } }) => [
      Math.floor(((choice / 3) * batch) / 8),
      h,
      i,
    ],
  },
  {
    law: 'sequences-alone',
    isForm: (choice) => choice % 3 === 0,
    kinds: { masked: true, packed: true },
    origin: ([b, h, i], { choice, given: { sequences } }) => [
      b,
      h,
      i + sequences![choice / 3 < 4 ? 0 : 1].firstQuery,
    ],
  },
  {
    law: 'value-scaling',
    kinds: { masked: true },
    // Of a row without keys O is 0, which is not well inside the range of a format.
    origin: (row, { shape, runs: [{ visible }] }, column) =>
      column !== null && visible[rowAt(shape, row)].length === 0 ? null : row,
    factor: (choice) => 2 ** exponents[choice],
  },
  {
    law: 'nan-containment',
    kinds: { masked: true },
    isIdle: ({ runs, shape }) =>
      rowsOf(shape).every((row) =>
        [null, ...upTo(shape.vDim)].every((column) => isReached(row, column, runs)),
      ),
    origin: (row, { runs }, column) => (isReached(row, column, runs) ? null : row),
  },
];

describe.each(comparisons)('$law, $kinds', (one) => {
  const { law, kinds = {}, isForm = () => true, origin, factor = () => 1 } = one;
  const forms = upTo(laws[law].choices).filter(isForm);
  const promises: KernelPromises = {
    features: ['mask', 'packed', 'bias', 'sink', 'segments', 'alibi', 'prefix', 'block-mask'],
  };

  it('compares each result with what it is by definition, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(
        drawnProblem(kinds),
        fc.constantFrom(...forms),
        fc.nat(),
        async (given, choice, which) => {
          const shape = problemShape(given);
          const right = await tryByHand(law, given, { choice, promises });
          expect(right.statement).toBeNull();
          const { runs } = right;
          const isIdle = one.isIdle?.({ choice, given, shape, runs }) ?? false;
          expect(right.inapplicable).toBe(isIdle);
          if (right.inapplicable) return;
          const last = runs.length - 1;
          const posed = problemShape(runs[last].problem);
          const first = problemShape(runs[0].problem);
          const told = { choice, given, shape, runs };
          const results = [null, ...upTo(posed.vDim)].flatMap((column) =>
            rowsOf(posed).map((row) => ({ row, column, from: origin(row, told, column) })),
          );
          const { row, column, from } = results[which % results.length];
          /** What the law says where some results of the last run are moved by a little. */
          const statement = async (changed: readonly (typeof results)[number][]) => {
            const change = ({ out, lse }: DefinedRun, index: number) => {
              if (index !== last) return;
              for (const { row, column } of changed)
                if (column === null) lse[rowAt(posed, row)] = 77;
                else out[rowAt(posed, row) * posed.vDim + column] = 77;
            };
            return (await tryByHand(law, given, { choice, promises, change })).statement;
          };
          const found = await statement([{ row, column, from }]);
          if (from === null) {
            expect(found).toBeNull();
            return;
          }
          const at = rowAt(first, from);
          const usual =
            column === null
              ? runs[0].lse[at]
              : factor(choice) * runs[0].out[at * first.vDim + column];
          const [batch, head, query] = from;
          const place = describePlace({
            batch,
            head,
            query,
            ...(column === null ? {} : { column }),
          });
          const what = column === null ? 'the LSE' : 'O';
          expect(found).toContain(`${what} at ${place} is ${usual === 0 ? 0 : usual} `);
          expect(found).toContain(' but 77 ');
          expect(found).not.toContain(' differ)');
          // All of O, or of the LSE, counted.
          const alike = results.filter(
            (result) => result.from !== null && (result.column === null) === (column === null),
          );
          const unit = column === null ? 'rows' : 'elements';
          const count = `(${alike.length} of ${alike.length} ${unit} differ)`;
          if (alike.length > 1) expect(await statement(alike)).toContain(count);
        },
      ),
      { numRuns: 10 },
    );
  });
});
