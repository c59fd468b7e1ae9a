import { describe, expect, it } from 'vitest';
import { createGridOrder, type Instruction } from '../../src/machine/index.js';
import {
  fragment,
  kindsOf,
  launchMemory,
  messagesOf,
  places,
  runProgram,
  transfer,
} from './launch.js';

describe('clusters of one grid that run one after another', () => {
  /** The runs of clusters of one warp each. */
  function runs(...clusters: ((base: number) => Instruction[])[]) {
    const memory = launchMemory();
    const tensor = { shape: [64], elementBits: 32 };
    const { base } = memory.global.allocate({ name: 'o', contents: new Uint8Array(256), tensor });
    const grid = createGridOrder();
    return clusters.map((body) => runProgram({ memory, warps: [body(base)] }, { grid }));
  }
  const one = (address: number) => places('global', address, 4, 1);
  const storeOf = (value: number) => (base: number) => [
    transfer(
      'st',
      one(base),
      fragment(1, () => value),
    ),
  ];
  const store = storeOf(1);
  const load = (base: number) => [transfer('ld', one(base))];

  it('race where one writes what another reads or writes', () => {
    expect(runs(store, storeOf(2)).map(kindsOf)).toEqual([[], ['race']]);
    expect(runs(store, store).map(kindsOf)).toEqual([[], []]);
    expect(runs(store, load).map(kindsOf)).toEqual([[], ['race']]);
    expect(runs(load, store).map(kindsOf)).toEqual([[], ['race']]);
    expect(messagesOf(runs(store, storeOf(2))[1])).toEqual([
      'global memory, element [0] of "o": two writes in no order: CTA 0 warp 0 (st) and CTA 0 warp 0 (st)',
    ]);
  });

  it('do not race in different words, in reads, or in memory of their own', () => {
    const own: Instruction = transfer('st', places('shared::cta', 1024));
    expect(runs(load, load).map(kindsOf)).toEqual([[], []]);
    expect(runs(store, (base) => store(base + 4)).map(kindsOf)).toEqual([[], []]);
    expect(
      runs(
        () => [own],
        () => [own],
      ).map(kindsOf),
    ).toEqual([[], []]);
  });

  it('come after one another by what one releases and the other acquires, with the scope of the GPU', () => {
    const flag = (base: number) => one(base + 128);
    const set = fragment(1, () => 1);
    const passing = (scope: 'cta' | 'gpu') =>
      runs(
        (base) => [...store(base), transfer('st', flag(base), set, { order: 'release', scope })],
        (base) => [
          transfer('ld', flag(base), fragment(), { order: 'acquire', scope }),
          ...load(base),
          ...store(base),
        ],
      ).map(kindsOf);
    expect(passing('gpu')).toEqual([[], []]);
    expect(passing('cta')).toEqual([[], ['race']]);
  });
});
