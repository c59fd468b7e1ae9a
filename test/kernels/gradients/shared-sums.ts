import { broadcastPlaces } from '../../../src/problem/index.js';
import { eachSeen, type Run } from './forward-pass.js';
import { orderedSums } from './ordered-sums.js';

/** Numbers by what they are added to. */
type Terms = Map<number, number[]>;

function addTerm(terms: Terms, at: number, term: number): void {
  const known = terms.get(at);
  if (known === undefined) terms.set(at, [term]);
  else known.push(term);
}

/**
 * The gradients of a bias and of sinks, in the shape of the bias and [heads]: sums of dS over what these are broadcast to, in fp32, in
 * the order that the kernel has. Null where a problem has none.
 */
export function sharedGradients(
  { problem, shape, steps, options }: Run,
  { bias, sink }: Readonly<Record<'bias' | 'sink', readonly Float32Array[]>>,
): Readonly<Record<'dbias' | 'dsink', Float32Array | null>> {
  const { batch, heads, queries, keys } = shape;
  const { order = 'ascending', seed = 0 } = options;
  const sum = orderedSums({ order, seed, accumulator: { format: 'fp32' } }, 1);
  const summed = (terms: Terms, length: number) => {
    const all = new Float32Array(length);
    for (const [at, of] of terms) {
      const factors = new Float32Array(of.length).fill(1);
      all[at] = sum({ factors, offsets: Int32Array.from(of.keys()) }, Float32Array.from(of))[0];
    }
    return all;
  };
  const [ofBias, ofSink]: Terms[] = [new Map(), new Map()];
  const placesOf =
    problem.bias === undefined ? null : broadcastPlaces(problem.bias.shape, problem, shape);
  for (let head = 0; head < batch * heads; head++) {
    const entry = Math.floor(head / heads);
    const taken = <T>(of: 'dbias' | 'dsink', all: readonly T[]): T | null => {
      const from = steps.entryOf(of, entry);
      return from === null ? null : all[from * heads + (head % heads)];
    };
    const [ofHead, terms] = [taken('dsink', sink), taken('dbias', bias)];
    for (let row = 0; row < queries; row++) {
      if (ofHead !== null) addTerm(ofSink, head % heads, ofHead[row]);
      const place = placesOf?.(head, row);
      if (place === undefined || terms === null) continue;
      eachSeen(steps.ranges(head, row), (key) =>
        addTerm(ofBias, place(key), terms[row * keys + key]),
      );
    }
  }
  const size = problem.bias?.shape.reduce((product, one) => product * one, 1) ?? 0;
  return {
    dbias: problem.bias === undefined ? null : summed(ofBias, size),
    dsink: problem.sink === undefined ? null : summed(ofSink, heads),
  };
}
