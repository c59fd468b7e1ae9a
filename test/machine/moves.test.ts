import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { instructionRecords } from '../../src/machine/instructions/index.js';
import { createRecorder } from '../../src/meaning/record/index.js';
import {
  type ByteStore,
  byteStoreOf,
  createTensorMap,
  type Fragment,
  type Instruction,
  meaningOf,
  type Opcode,
  tagsOf,
} from '../../src/machine/index.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import { scaled } from '../setup/effort.js';
import {
  data,
  fragment,
  launchMemory,
  places,
  runProgram,
  transfer,
  wait,
  words,
} from './launch.js';
import { allocate, deallocate } from './tile-product.js';

/** Bytes of the regions of shared and of global memory that are looked at, and columns of tensor memory. */
const [sharedBytes, globalBytes, columns] = [8192, 512, 64];
const [lanes, wordBytes] = [32, 4];

/** All bytes that an instruction of the tests can reach. */
interface Scene {
  readonly shared: Uint8Array<ArrayBuffer>;
  readonly global: Uint8Array<ArrayBuffer>;
  readonly tensor: Uint8Array<ArrayBuffer>;
  readonly registers: Uint8Array<ArrayBuffer>;
}

const sizes: Readonly<Record<keyof Scene, number>> = {
  shared: sharedBytes,
  global: globalBytes,
  tensor: lanes * columns * wordBytes,
  registers: lanes * 4 * wordBytes,
};

const regions = Object.keys(sizes) as readonly (keyof Scene)[];

function sceneOf(bytesOf: (region: keyof Scene) => Uint8Array<ArrayBuffer>): Scene {
  return {
    shared: bytesOf('shared'),
    global: bytesOf('global'),
    tensor: bytesOf('tensor'),
    registers: bytesOf('registers'),
  };
}

/** Registers and global memory, whose address is `base`. */
interface Places {
  readonly registers: Fragment;
  readonly global: Fragment;
  readonly base: number;
}

const barrier = 0;
/** Half of the region of shared memory, to be written; the other half is read. */
const target = data + sharedBytes / 2;
const bulk = (space: 'shared::cta' | 'shared::cluster' | 'global', from: number) => ({
  ...places(space, from, 128, 1),
  alignment: 16,
});
const completion = (bytes: number): readonly Instruction[] => [
  { op: 'mbarrier.arrive.expect_tx', barrier, bytes },
  wait(barrier, 0),
];
const group: readonly Instruction[] = [
  { op: 'cp.async.bulk.commit_group' },
  { op: 'cp.async.bulk.wait_group', pending: 0 },
];
const proxy: Instruction = { op: 'fence.proxy.async' };
const lines = { shape: '32x32b', repeat: 4, isPacked: false } as const;
const packed = { shape: '16x64b', repeat: 4, isPacked: true } as const;

function boxOf({ global, base }: Places) {
  const map = createTensorMap({
    name: 'X',
    place: { store: global, offset: 0 },
    elementBytes: 4,
    elementType: 'u32',
    dims: [32, 1],
    strides: [128],
    box: [32, 1],
    swizzle: 'none',
  });
  return { coordinates: [8, 0], name: 'X', map: { ...map, address: base } } as const;
}

/** For each instruction that can move bytes, what a warp does with it. */
const movers: Partial<Record<Opcode, (places: Places) => readonly Instruction[]>> = {
  'ld.shared': ({ registers }) => [{ ...words('ld.shared', data, registers) }],
  'st.shared': ({ registers }) => [{ ...words('st.shared', target, registers) }],
  'ld.global': ({ registers, global }) => [globalWords('ld.global', registers, global)],
  'st.global': ({ registers, global }) => [globalWords('st.global', registers, global)],
  ld: ({ registers }) => [transfer('ld', places('shared::cta', data, 16), registers)],
  st: ({ registers, base }) => [transfer('st', places('global', base, 16), registers)],
  ldmatrix: ({ registers }) => [
    {
      op: 'ldmatrix',
      rows: places('shared::cta', data, 16),
      matrices: 4,
      isTransposed: true,
      data: registers,
    },
  ],
  stmatrix: ({ registers }) => [
    {
      op: 'stmatrix',
      rows: places('shared::cta', target, 16),
      matrices: 4,
      isTransposed: false,
      data: registers,
    },
  ],
  atom: ({ registers }) => [exchange('atom', registers)],
  red: ({ registers }) => [exchange('red', registers)],
  'cp.async': ({ base }) => [
    {
      op: 'cp.async',
      destination: places('shared::cta', target, 16),
      source: places('global', base, 16),
      sourceBytes: Int32Array.from({ length: lanes }, (_, lane) => lane % 17),
    },
    { op: 'cp.async.wait_all' },
  ],
  'cp.async.bulk.shared': ({ base }) => [
    {
      op: 'cp.async.bulk.shared',
      source: bulk('global', base),
      destination: bulk('shared::cluster', target),
      reduction: null,
      barrier,
      multicast: null,
    },
    ...completion(128),
  ],
  'cp.async.bulk.global': ({ base }) => [
    proxy,
    {
      op: 'cp.async.bulk.global',
      source: bulk('shared::cta', data),
      destination: bulk('global', base),
      reduction: null,
    },
    ...group,
  ],
  'st.async': ({ registers }) => [
    {
      op: 'st.async',
      destination: places('shared::cluster', target, 16),
      data: registers,
      reduction: null,
      barrier,
    },
    ...completion(lanes * 16),
  ],
  'cp.async.bulk.tensor.shared.global': (from) => [
    {
      op: 'cp.async.bulk.tensor.shared.global',
      ...boxOf(from),
      destination: target,
      barrier,
    },
    ...completion(128),
  ],
  'cp.async.bulk.tensor.global.shared': (to) => [
    proxy,
    { op: 'cp.async.bulk.tensor.global.shared', ...boxOf(to), source: data },
    ...group,
  ],
  'tcgen05.ld': ({ registers }) => [
    { op: 'tcgen05.ld', transfer: packed, address: 8, fragment: registers, name: 'T' },
    { op: 'tcgen05.wait::ld' },
  ],
  'tcgen05.st': ({ registers }) => [
    { op: 'tcgen05.st', transfer: lines, address: 8, fragment: registers, name: 'T' },
    { op: 'tcgen05.wait::st' },
  ],
  'tcgen05.cp': () => [
    proxy,
    {
      op: 'tcgen05.cp',
      group: 1,
      shape: '128x256b',
      address: 16,
      name: 'A',
      source: {
        address: data,
        leadingByteOffset: 2048,
        strideByteOffset: 128,
        swizzle: 'none',
        major: 'k',
      },
    },
    { op: 'tcgen05.commit', group: 1, barrier, ctas: [0] },
    wait(barrier, 0),
  ],
};

function globalWords(
  op: 'ld.global' | 'st.global',
  registers: Fragment,
  memory: Fragment,
): Instruction {
  const addresses = Int32Array.from({ length: lanes }, (_, lane) => (7 * lane) % lanes);
  return { op, memory, addresses, fragment: registers, name: 'G' };
}

function exchange(op: 'atom' | 'red', registers: Fragment): Instruction {
  return {
    op,
    ...places('shared::cta', data, 16),
    order: 'relaxed',
    scope: 'gpu',
    operation: 'exch',
    type: 'b128',
    elements: 1,
    operands: registers,
    compared: null,
    result: op === 'atom' ? registers : null,
  };
}

/** Loads or stores of all of shared memory's region, and of all columns. */
function transfers(direction: 'ld' | 'st', shared: readonly Fragment[], tensor: Fragment) {
  return [
    ...shared.map((part, i) =>
      transfer(direction, places('shared::cta', data + 512 * i, 16), part),
    ),
    {
      op: `tcgen05.${direction}`,
      transfer: { shape: '32x32b', repeat: columns, isPacked: false },
      address: 0,
      fragment: tensor,
      name: 'T',
    },
    { op: `tcgen05.wait::${direction}` },
  ] as const satisfies readonly Instruction[];
}

/** Other names of bytes in each plane, which stand for tags; null where bytes have none. */
type TagNames = readonly Uint8Array[] | null;

/** A store with a tag on each of its bytes that says what the byte is. */
function tagged<Store extends ByteStore>(store: Store, names: TagNames): Store {
  names?.forEach((ofPlane, i) => {
    const { bytes } = tagsOf(store)[i];
    for (let at = 0; at < store.bytes.length; at++) bytes[at] = ofPlane[store.bytes[at]];
  });
  return store;
}

/** Expects that the tags of a store's bytes say what the bytes are. */
function expectTags(store: ByteStore, names: TagNames): void {
  names?.forEach((ofPlane, i) => {
    const due = Uint8Array.from(store.bytes, (byte) => ofPlane[byte]);
    const got = tagsOf(store)[i].bytes.subarray(0, due.length);
    expect(Buffer.compare(got, due)).toBe(0);
  });
}

/** The scene after the instructions, from the scene before; with names, tags have gone where their bytes have. */
function after(
  before: Scene,
  make: (places: Places) => readonly Instruction[],
  names: TagNames = null,
): Scene {
  const memory = launchMemory();
  const { store, base } = memory.global.allocate({ name: 'G', contents: before.global.slice() });
  tagged(store, names);
  const registers = tagged(byteStoreOf(before.registers.slice()), names);
  const parts = Array.from({ length: sharedBytes / 512 }, (_, i) =>
    tagged(byteStoreOf(before.shared.slice(512 * i, 512 * (i + 1))), names),
  );
  const tensor = tagged(byteStoreOf(before.tensor.slice()), names);
  const seen = { parts: parts.map(() => fragment(4)), tensor: fragment(columns) };
  // Else what is written over would be written in vain.
  const look = transfers('ld', parts, tensor);
  const options = names === null ? {} : { tracer: createRecorder([]).tracer };
  const program: Parameters<typeof runProgram>[0] = {
    memory,
    barriers: { bytes: 1 },
    warps: [
      [
        allocate(columns, 16),
        ...transfers('st', parts, tensor),
        ...look,
        ...make({ registers, global: store as Fragment, base }),
        ...transfers('ld', seen.parts, seen.tensor),
        deallocate(columns),
      ],
    ],
  };
  const { findings, isComplete } = runProgram(program, options);
  // Stores through the cluster come to the CTA itself here.
  const others = findings.filter(({ message }) => !message.endsWith('in a cluster of one CTA'));
  expect(others.map(({ message }) => message)).toEqual([]);
  expect(isComplete).toBe(true);
  for (const one of [store, registers, ...seen.parts, seen.tensor]) expectTags(one, names);
  const shared = new Uint8Array(sharedBytes);
  seen.parts.forEach(({ bytes }, i) => shared.set(bytes, 512 * i));
  return {
    shared,
    tensor: seen.tensor.bytes,
    global: Uint8Array.from(store.bytes),
    registers: registers.bytes,
  };
}

/** Other names of bytes, by a seed; 0, which fills what nothing is moved to, keeps its own. */
function renaming(next: () => number): Uint8Array {
  const names = Uint8Array.from({ length: 256 }, (_, i) => i);
  for (let i = 255; i > 1; i--) {
    const other = 1 + (next() % i);
    [names[i], names[other]] = [names[other], names[i]];
  }
  return names;
}

describe('an instruction that moves bytes', () => {
  const opcodes = Object.keys(instructionRecords) as Opcode[];
  const movable = opcodes.filter((op) => {
    const { meaning } = instructionRecords[op];
    return op !== 'red.async' && (meaning === 'moves' || typeof meaning === 'function');
  });

  it('has a program here, whichever it is', () => {
    const arrivals = ['mbarrier.arrive', 'mbarrier.arrive.expect_tx'];
    expect(Object.keys(movers).sort()).toEqual(
      movable.filter((op) => !arrivals.includes(op)).sort(),
    );
  });

  it.each(Object.entries(movers))('takes the tags of the bytes along: %s', (_, make) => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const next = wordSource(seed);
        const before = sceneOf((region) => Uint8Array.from({ length: sizes[region] }, next));
        const names = Array.from({ length: 4 }, () => renaming(next));
        after(before, make, names);
      }),
      { numRuns: scaled(1) },
    );
  });

  it.each(Object.entries(movers))('takes no notice of their values: %s', (op, make) => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const next = wordSource(seed);
        const before = sceneOf((region) => Uint8Array.from({ length: sizes[region] }, next));
        const names = renaming(next);
        const renamed = (scene: Scene) =>
          sceneOf((region) => Uint8Array.from(scene[region], (byte) => names[byte]));
        const plain = after(before, (places) => {
          const instructions = make(places);
          expect(meaningOf(instructions.find((one) => one.op === op)!)).toBe('moves');
          return instructions;
        });
        const changed = (one: Scene, other: Scene) =>
          regions.filter((region) => Buffer.compare(one[region], other[region]) !== 0);
        expect(changed(plain, before)).not.toEqual([]);
        expect(changed(after(renamed(before), make), renamed(plain))).toEqual([]);
      }),
      { numRuns: scaled(2) },
    );
  });
});
