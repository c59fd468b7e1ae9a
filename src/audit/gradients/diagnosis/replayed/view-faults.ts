import type { Replayed } from '../replay/replay.js';
import type { BackwardChange, BackwardOperands } from '../replay/backward-row.js';
import { deltaOf, layouts, readFrom, type Layout } from './other-rows.js';
import type { ReplayedFault } from './replayed-fault.js';

/** Inputs that are viewed together; where `back` is set, their gradients are written in the order in which they are read. */
interface Viewed {
  readonly words: string;
  readonly inputs: readonly (keyof BackwardOperands)[];
  readonly back: boolean;
}

const viewed: readonly Viewed[] = [
  { words: 'Q, K and V', inputs: ['q', 'k', 'v'], back: true },
  { words: 'Q, K, V and dO', inputs: ['q', 'k', 'v', 'dout'], back: true },
  { words: 'K and V', inputs: ['k', 'v'], back: true },
  { words: 'Q and K', inputs: ['q', 'k'], back: true },
  { words: 'Q', inputs: ['q'], back: true },
  { words: 'K', inputs: ['k'], back: true },
  { words: 'V', inputs: ['v'], back: true },
  { words: 'Q and dO', inputs: ['q', 'dout'], back: true },
  { words: 'Q, K and V', inputs: ['q', 'k', 'v'], back: false },
  { words: 'Q, K, V and dO', inputs: ['q', 'k', 'v', 'dout'], back: false },
];

const readBackwards: readonly Omit<Viewed, 'back'>[] = [
  { words: 'Q and K', inputs: ['q', 'k'] },
  { words: 'Q, K and V', inputs: ['q', 'k', 'v'] },
  { words: 'Q, K, V and dO', inputs: ['q', 'k', 'v', 'dout'] },
];

/** The order of the rows that each input is read in. */
type Orders = Readonly<Record<keyof BackwardOperands, Layout | undefined>>;

/** The two wrong orders of axes; none for what has a single head, or a single row. */
function ordersOf({ failed }: Replayed): readonly Orders[] {
  const { heads, kvHeads, queries, keys } = failed.measured.shape;
  const ofQueries = layouts({ heads, rows: queries });
  const ofKeys = layouts({ heads: kvHeads, rows: keys });
  return [0, 1].map((way) => {
    const [one, other] = [ofQueries[way], ofKeys[way]];
    return { q: one, k: other, v: other, dout: one };
  });
}

/** Inputs with the orders that they are read in; null where one of them has no other. */
function movedIn(orders: Orders, inputs: Viewed['inputs']): Moved | null {
  const moved = inputs.flatMap((name) => {
    const order = orders[name];
    return order === undefined ? [] : [[name, order] as const];
  });
  const [first] = moved;
  return first === undefined || moved.length < inputs.length
    ? null
    : { moved, words: first[1].words };
}

/** Inputs that are read in another order, and what that is in words. */
interface Moved {
  readonly moved: readonly (readonly [keyof BackwardOperands, Layout])[];
  readonly words: string;
}

/** Inputs as they are read. */
function readAs({ operands, failed }: Replayed, { moved }: Moved): Partial<BackwardOperands> {
  const { qkDim, vDim } = failed.measured.shape;
  const dims = { q: qkDim, k: qkDim, v: vDim, dout: vDim };
  return Object.fromEntries(
    moved.map(([name, { from }]) => [name, readFrom(operands[name], dims[name], from)]),
  );
}

/** Passes whose inputs are read in another order, forwards too. */
function changesOf(of: Replayed, read: Moved, isBack: boolean): readonly BackwardChange[] {
  // What is read from a row in the place of another has its gradient there.
  const written = read.moved.flatMap(([name, { from, to }]) =>
    name === 'dout' ? [] : [[`d${name}`, { to: from, from: to }] as const],
  );
  const change: BackwardChange = {
    operands: readAs(of, read),
    logarithm: 'scores',
    ...(isBack ? { written: Object.fromEntries(written) } : {}),
  };
  const ofWeights: BackwardChange = { ...change, delta: 'weights' };
  if (of.stored === null) return [ofWeights];
  // The O that was given is that of the rows that dO is of.
  const dout = read.moved.find(([name]) => name === 'dout')?.[1];
  const { delta } = of.stored;
  return [
    { ...change, delta: dout === undefined ? delta : readFrom(delta, 1, dout.from) },
    ofWeights,
  ];
}

/** Several inputs that the backward pass alone reads in the order of axes that they do not have. */
function* inBackwardAlone(of: Replayed, orders: Orders): Generator<ReplayedFault> {
  for (const { words, inputs } of readBackwards) {
    const read = movedIn(orders, inputs);
    if (read === null) continue;
    const operands = readAs(of, read);
    const id = 'inputs-layout';
    const sentence = `${words} are ${read.words} in the backward pass`;
    yield { id, sentence, change: { operands } };
    if (operands.dout !== undefined)
      yield {
        id,
        sentence: `${sentence}, and D is made of that dO`,
        change: { operands, delta: deltaOf(of.failed, operands.dout) },
      };
  }
}

/**
 * Inputs that the forward and the backward pass read in the order of axes that they do not have, as by a view in the place of a
 * transpose: their gradients are those of the attention that is computed so, and a framework writes them back by the same view.
 */
function* inBothPasses(of: Replayed, orders: Orders): Generator<ReplayedFault> {
  for (const { words, inputs, back } of viewed) {
    const read = movedIn(orders, inputs);
    if (read === null) continue;
    const isOne = inputs.length === 1;
    const rest = back ? `, and ${isOne ? 'its gradient is' : 'gradients are'} written so` : '';
    for (const change of changesOf(of, read, back))
      yield {
        id: 'view-for-transpose',
        sentence: `${words} ${isOne ? 'is' : 'are'} ${read.words}, in the forward and the backward pass${rest}: a view in place of a transpose`,
        change,
      };
  }
}

/** Inputs that lie in memory in another order of axes than they are read in: several in the backward pass, or any in both passes. */
export function* viewFaults(of: Replayed): Generator<ReplayedFault> {
  // Heads that are mixed are so everywhere.
  if (of.scope !== null) return;
  const all = ordersOf(of);
  // Without dQ, whose rows tell most passes, each would be computed as a whole.
  if (of.failed.given.some(({ quantity }) => quantity.name === 'dq'))
    for (const orders of all) yield* inBothPasses(of, orders);
  // The stored LSE of a forward that reads so too makes this the same.
  for (const orders of all) yield* inBackwardAlone(of, orders);
}
