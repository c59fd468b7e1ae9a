import { describe, expect, it } from 'vitest';
import {
  byteStoreOf,
  createTensorMap,
  type Instruction,
  type MemoryModelName,
  memoryModels,
} from '../../src/machine/index.js';
import { data, expectBytes, kindsOf, runProgram, wait, words } from './launch.js';

const bytes = new Uint8Array(128);
const map = createTensorMap({
  name: 'X',
  place: { store: byteStoreOf(bytes), offset: 0 },
  elementBytes: 4,
  dims: [32, 1],
  strides: [128],
  box: [32, 1],
  swizzle: 'none',
});
const load: Instruction = {
  op: 'cp.async.bulk.tensor.shared.global',
  map,
  coordinates: [0, 0],
  destination: data,
  barrier: 0,
  name: 'X',
};
const store: readonly Instruction[] = [
  { op: 'cp.async.bulk.tensor.global.shared', map, coordinates: [0, 0], source: data, name: 'X' },
  { op: 'cp.async.bulk.commit_group' },
  { op: 'cp.async.bulk.wait_group', pending: 0 },
];
const landed: readonly Instruction[] = [
  expectBytes(0, 128),
  load,
  wait(0, 0),
  words('ld.shared', data),
];

const fence: Instruction = { op: 'fence.proxy.async' };

/** What is found in a program of one warp. */
function found(body: readonly Instruction[], model: MemoryModelName) {
  const program = { barriers: { full: 1 }, warps: [body] };
  return kindsOf(runProgram(program, { model: memoryModels[model] }));
}

const read = words('ld.shared', data);
const write = words('st.shared', data);

const all = ['practice', 'pipe', 'ptx', 'ptx-9.2'] as const;
const strict = ['ptx', 'ptx-9.2'] as const;

describe('fence.proxy.async', () => {
  it.each<[string, readonly Instruction[], readonly MemoryModelName[]]>([
    ['a store before TMA reads it', [write, ...store], all],
    ['a store that nobody has read before TMA writes there', [write, ...landed], all],
    ['a load before TMA writes there', [write, fence, read, ...landed], strict],
    ['a store that has been read before TMA writes there', [write, read, ...landed], strict],
    ['nothing where there is a fence', [write, read, fence, ...landed], []],
  ])('is due after %s', (_, body, models) => {
    for (const model of all)
      expect(found(body, model), model).toEqual(models.includes(model) ? ['race'] : []);
  });
});
