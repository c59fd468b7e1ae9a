import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  clusterAddress,
  createMmaUnits,
  randomScheduler,
  tensorAddress,
  type Instruction,
  type RunOptions,
  type WarpPlace,
} from '../../src/machine/index.js';
import {
  data,
  expectBytes,
  fragment,
  kindsOf,
  look,
  meet,
  messagesOf,
  runProgram,
  wait,
} from './launch.js';
import {
  allocate,
  boxBytes,
  commitTo,
  deallocate,
  loadTile,
  matrixMap,
  multiplyInPair,
  productOf,
  randomPatterns,
  tile,
} from './tile-product.js';

const mmaUnits = createMmaUnits('sm_100');
const rowsOfPair = 2 * tile.m;
const columns = 2 * tile.n;
const [a, b] = [
  randomPatterns(rowsOfPair * tile.k, 5),
  randomPatterns(columns * tile.k, 6),
] as const;
const aMap = matrixMap('A', a, tile.k, tile.m);
const bMap = matrixMap('B', b, tile.k, tile.n);
const product = productOf(a, b, { m: rowsOfPair, n: columns, k: tile.k });
const place = { a: 2048, b: 2048 + boxBytes.a, d: 0 };
const [full, computed] = [0, 8];

/** The place of an element of the product in what the warps have read: 64 rows to a CTA. */
function readerOf(i: number): { readonly cta: number; readonly warp: number; word: number } {
  const [row, column] = [Math.floor(i / columns), i % columns];
  // Lanes 64 to 127 hold the right half of the columns.
  const lane = (row % tile.m) + (column < tile.n ? 0 : tile.m);
  return {
    cta: Math.floor(row / tile.m),
    warp: Math.floor(lane / 32),
    word: (lane % 32) * tile.n + (column % tile.n),
  };
}

/**
 * A pair that multiplies. In each CTA warp 0 allocates, and warp 1 loads without having waited for it;
 * warp 1 of the leader multiplies once its own CTA has met. Of the peer's allocation it knows only what
 * tcgen05.alloc says.
 *
 * @param group 2: both allocate collectively, as they must
 */
function runPair(group: 1 | 2, options: RunOptions = {}) {
  const read = [0, 1].map(() => [0, 1, 2, 3].map(() => fragment(tile.n)));
  const body = function* ({ cta, warp }: WarpPlace): Generator<Instruction> {
    if (warp === 0) yield { ...allocate(32, data), group } as Instruction;
    if (warp === 1) {
      if (cta === 0) yield expectBytes(full, 2 * (boxBytes.a + boxBytes.b));
      yield loadTile(aMap, [0, cta * tile.m], place.a, clusterAddress(0, full));
      yield loadTile(bMap, [0, cta * tile.n], place.b, clusterAddress(0, full));
    }
    yield meet('bar.sync', 1, 4);
    if (warp === 1 && cta === 0) {
      yield wait(full, 0);
      yield multiplyInPair(place, false);
      yield commitTo(computed, 'D: committed', [0, 1]);
    }
    yield wait(computed, 0);
    yield {
      op: 'tcgen05.ld',
      transfer: { shape: '32x32b', repeat: tile.n },
      name: 'D',
      address: tensorAddress(32 * warp, place.d),
      fragment: read[cta][warp],
    };
    yield { op: 'tcgen05.wait::ld' };
    yield look(read[cta][warp], () => undefined);
    yield { op: 'barrier.cluster.arrive' };
    yield { op: 'barrier.cluster.wait' };
    if (warp === 0) yield { ...deallocate(32), group } as Instruction;
  };
  const program = { ctas: 2, barriers: { full: 1, computed: 1 }, warps: Array(4).fill(body) };
  const run = runProgram({ ...program, ctas: 2 }, { mmaUnits, ...options });
  const out = product.map((_, i) => {
    const { cta, warp, word } = readerOf(i);
    return read[cta][warp].words[word];
  });
  return { run, out };
}

describe('tcgen05.alloc of a pair', () => {
  it.each([
    ...adversarialSchedulers(4),
    ...Array.from({ length: 5 }, (_, seed) => randomScheduler(seed)),
  ])('comes before what either CTA does in the other: $name', (scheduler) => {
    const { run, out } = runPair(2, { scheduler });
    expect(messagesOf(run)).toEqual([]);
    expect(out).toEqual(product);
  });

  it('that the CTAs do not make together is found, although the values are right', () => {
    const { run, out } = runPair(1);
    expect(out).toEqual(product);
    expect(kindsOf(run)).toEqual(['race']);
    for (const { cta, message, accesses } of run.findings) {
      expect(cta).toBe(1);
      expect(message).toContain('used in no order with its allocation');
      expect(accesses.map(({ who }) => who)).toEqual([
        'CTA 1 warp 0',
        'tcgen05.mma of CTA 0 warp 1',
      ]);
    }
  });

  it('is awaited for ever by one whose peer does not allocate', () => {
    const run = runProgram({
      ctas: 2,
      warps: [({ cta }) => (cta === 0 ? [{ ...allocate(32, data), group: 2 } as Instruction] : [])],
    });
    expect(messagesOf(run)).toEqual([
      'deadlock: CTA 0 warp 0 at "allocates" waits for tcgen05.alloc of the other CTA of the pair',
    ]);
  });
});
