import type { Problem, ProblemShape } from '../../../../problem/index.js';
import { axisOf, everywhere } from '../../../rows/index.js';
import type { BackwardChange } from '../replay/backward-row.js';
import type { Replayed } from '../replay/replay.js';
import { deltaOf, layouts, neighbours, readFrom } from './other-rows.js';
import type { ReplayedFault } from './replayed-fault.js';

const inBackward = 'in the backward pass';

/** dO of something else, with D as it should be and with D made of it. */
function* doutFaults({ failed, operands }: Replayed): Generator<ReplayedFault> {
  const { batch, heads, queries, vDim } = failed.measured.shape;
  const sizes = { batch, heads, rows: queries };
  const ways = [
    ...neighbours(sizes, 'query').map((one) => ({ ...one, id: 'dout-of-others', verb: 'is that' })),
    ...layouts(sizes).map((one) => ({ ...one, id: 'dout-layout', verb: 'is' })),
  ];
  for (const { id, verb, words, from } of ways) {
    const dout = readFrom(operands.dout, vDim, from);
    const sentence = `dO ${verb} ${words} ${inBackward}`;
    yield { id, sentence, change: { operands: { dout } } };
    yield {
      id,
      sentence: `${sentence}, and D is made of it`,
      change: { operands: { dout }, delta: deltaOf(failed, dout) },
    };
  }
}

/** Q of other rows, heads, batch entries and layouts. */
function* queryFaults({ failed, operands }: Replayed): Generator<ReplayedFault> {
  const { batch, heads, queries, qkDim } = failed.measured.shape;
  const sizes = { batch, heads, rows: queries };
  const ways = [
    ...neighbours(sizes, 'query').map((one) => ({
      ...one,
      id: 'queries-of-others',
      verb: 'is that',
    })),
    ...layouts(sizes).map((one) => ({ ...one, id: 'queries-layout', verb: 'is' })),
  ];
  for (const { id, verb, words, from } of ways)
    yield {
      id,
      sentence: `Q ${verb} ${words} ${inBackward}`,
      change: { operands: { q: readFrom(operands.q, qkDim, from) } },
    };
}

/** K and V of other heads, batch entries and layouts, and of one another. */
function* keyFaults({ failed, operands }: Replayed): Generator<ReplayedFault> {
  const { batch, heads, kvHeads, keys, qkDim, vDim, groupSize } = failed.measured.shape;
  const { k, v } = operands;
  const sizes = { batch, heads: kvHeads, rows: keys };
  const columns = { k: qkDim, v: vDim } as const;
  const change = (
    names: readonly ('k' | 'v')[],
    from: (row: number) => number,
  ): BackwardChange => ({
    operands: Object.fromEntries(
      names.map((name) => [name, readFrom(operands[name], columns[name], from)]),
    ),
  });
  if (qkDim === vDim) {
    yield {
      id: 'keys-for-values',
      sentence: `K is read for V ${inBackward}`,
      change: { operands: { v: k } },
    };
    yield {
      id: 'values-for-keys',
      sentence: `V is read for K ${inBackward}`,
      change: { operands: { k: v } },
    };
  }
  for (const [names, words, id] of [
    [['k', 'v'], 'K and V are those', 'keys-of-others'],
    [['v'], 'V is that', 'values-of-others'],
    [['k'], 'K is that', 'keys-of-others'],
  ] as const) {
    for (const one of neighbours(sizes, 'key'))
      yield {
        id,
        sentence: `${words} ${one.words} ${inBackward}`,
        change: change(names, one.from),
      };
    const verb = words.replace(/ (those|that)$/, '');
    for (const one of layouts(sizes))
      yield {
        id: 'keys-layout',
        sentence: `${verb} ${one.words} ${inBackward}`,
        change: change(names, one.from),
      };
  }
  if (groupSize === 1 || kvHeads === 1) return;
  const other = (head: number) => Math.floor(head / heads) * kvHeads + ((head % heads) % kvHeads);
  const words = `query head h reads K and V of head h mod ${kvHeads} in the place of h div ${groupSize} ${inBackward}`;
  const id = 'kv-head-of-another-group';
  yield { id, sentence: words, change: { kvHead: other } };
  yield {
    id,
    sentence: `${words}, and adds its dK and dV there`,
    change: { kvHead: other, addedTo: other },
  };
}

/** Pages that are exchanged at most. */
const mostPages = 24;

/** The size of the pages of a problem's keys; null where they are in none. */
function pageSizeOf({ stored }: Problem): number | null {
  return stored?.keys.form === 'paged' ? stored.keys.slotsPerGroup : null;
}

/** Pages of a sequence that are read in the place of one another. */
function* pageFaults({ failed, operands }: Replayed): Generator<ReplayedFault> {
  const { problem, measured } = failed;
  const { sequences = [] } = problem;
  const size = pageSizeOf(problem);
  if (size === null) return;
  const { shape } = measured;
  const pairs = sequences.flatMap(({ firstKey, keys }, sequence) => {
    const full = Math.floor(keys / size);
    return Array.from({ length: full }, (_, one) =>
      Array.from({ length: full - one - 1 }, (__, i) => [one, one + i + 1] as const),
    )
      .flat()
      .map((pages) => ({ pages, firstKey, sequence, keys }));
  });
  if (pairs.length > (mostPages * (mostPages - 1)) / 2) return;
  for (const { pages, firstKey, sequence, keys } of pairs) {
    const [one, other] = pages;
    const from = (row: number) => {
      const page = Math.floor(((row % shape.keys) - firstKey) / size);
      if (page !== one && page !== other) return row;
      return row + (page === one ? other - one : one - other) * size;
    };
    const members = [one, other].flatMap((page) =>
      Array.from({ length: size }, (_, i) => page * size + i),
    );
    const place = {
      ...everywhere,
      sequences: axisOf([sequence], sequences.length),
      keys: axisOf(members, keys),
    };
    for (const [names, words] of [
      [['k', 'v'], 'pages'],
      [['v'], 'pages of V'],
      [['k'], 'pages of K'],
    ] as const)
      yield {
        id: 'wrong-page',
        sentence: `${words} ${one} and ${other} of sequence ${sequence} are read in the place of one another ${inBackward}`,
        place,
        change: {
          operands: Object.fromEntries(
            names.map((name) => [name, readFrom(operands[name], columnsOf(shape, name), from)]),
          ),
        },
      };
  }
}

function columnsOf({ qkDim, vDim }: ProblemShape, name: 'k' | 'v'): number {
  return name === 'k' ? qkDim : vDim;
}

/** Backward passes that read another dO, Q, K or V than the forward pass. */
export function* operandFaults(of: Replayed): Generator<ReplayedFault> {
  yield* doutFaults(of);
  yield* queryFaults(of);
  yield* keyFaults(of);
  yield* pageFaults(of);
}
