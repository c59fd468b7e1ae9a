import { describe, expect, it } from 'vitest';
import {
  instructionRecords,
  noMemory,
  noRegisters,
  nothing,
  type InstructionRecord,
} from '../../src/machine/instructions/index.js';
import {
  createByteStore,
  createTensorMap,
  type Fragment,
  type Instruction,
  memoryModels,
  type Opcode,
  type RunOptions,
} from '../../src/machine/index.js';
import {
  data,
  expectBytes,
  fragment,
  launchMemory,
  meet,
  places,
  runProgram,
  transfer,
  words,
} from './launch.js';
import { allocate, boxBytes, multiply } from './tile-product.js';

const opcodes = Object.keys(instructionRecords) as Opcode[];
const suspectSite = 'the suspect';

/** A warp whose lanes of tensor memory are those of warp 0. */
const partnerWarp = 4;
const columns = 64;
/** Where the programs keep A and B, and the word of shared memory that gets the address of columns. */
const place = { a: data, b: data + boxBytes.a, address: 16 };

/**
 * Two instructions that warps 0 and 4 execute in no order; or one that reads what nobody has written, for
 * an instruction that writes where it reads, since its write is in every race that its read is in.
 */
interface Conflict {
  readonly suspect: Instruction;
  readonly partner?: Instruction;
}

const memory = launchMemory();
const tensor = memory.global.allocate({ name: 'T', contents: new Uint8Array(256) });

const lanes = { op: 'tcgen05.ld', transfer: { shape: '32x32b', repeat: 1 }, name: 'T' } as const;
const ldTensor = (address = 0, registers = fragment()): Instruction => ({
  ...lanes,
  address,
  fragment: registers,
});
const stTensor = (address = 0, registers = fragment()): Instruction => ({
  ...lanes,
  op: 'tcgen05.st',
  address,
  fragment: registers,
});
const map = createTensorMap({
  name: 'X',
  place: { store: createByteStore(128), offset: 0 },
  elementBytes: 4,
  dims: [32, 1],
  strides: [128],
  box: [32, 1],
  swizzle: 'none',
});
const box = { map, coordinates: [0, 0], name: 'X' } as const;
/** The same box where it lies in global memory. */
const placedBox = { ...box, map: { ...map, address: tensor.base } };
const copy: Instruction = {
  op: 'tcgen05.cp',
  group: 1,
  shape: '128x256b',
  address: 0,
  name: 'A',
  source: {
    address: place.a,
    leadingByteOffset: 2048,
    strideByteOffset: 128,
    swizzle: 'none',
    major: 'k',
  },
};
/** A wgmma of 8 columns: A in shared memory, or in registers. */
const wgmma = (d: Fragment = fragment(4), a?: Fragment): Instruction => {
  const descriptor = {
    address: data,
    leadingByteOffset: 16,
    strideByteOffset: 256,
    swizzle: '32B',
    major: 'k',
  } as const;
  return {
    op: 'wgmma.mma_async',
    a: 'bf16',
    b: 'bf16',
    accumulator: 'fp32',
    n: 8,
    accumulate: false,
    negateA: false,
    negateB: false,
    aOperand:
      a === undefined ? { space: 'shared', descriptor } : { space: 'registers', fragment: a },
    bOperand: descriptor,
    d,
  };
};
const mma = multiply({ a: place.a, b: place.b, d: 0 }, true);
const ldShared = words('ld.shared', data);
const stShared = words('st.shared', data);

/** For every instruction that reads or writes the memory of a CTA, something that conflicts with it. */
const sharedPlaces = places('shared::cta', data);
const matrices = {
  rows: places('shared::cta', data, 16),
  matrices: 4,
  isTransposed: false,
  data: fragment(4),
} as const;
const lanesAtomic = (op: 'atom' | 'red'): Instruction => ({
  op,
  ...sharedPlaces,
  order: 'relaxed',
  scope: 'gpu',
  operation: 'add',
  type: 'u32',
  elements: 1,
  operands: fragment(),
  compared: null,
  result: op === 'atom' ? fragment() : null,
});
const laneCopy = (from: number): Instruction => ({
  op: 'cp.async',
  destination: sharedPlaces,
  source: places('global', from),
  sourceBytes: new Int32Array(32).fill(4),
});

/** The one place of a bulk copy of 128 bytes. */
const bulkPlace = (space: 'shared::cta' | 'shared::cluster' | 'global', from: number) => ({
  ...places(space, from, 128, 1),
  alignment: 16,
});
const bulkToShared: Instruction = {
  op: 'cp.async.bulk.shared',
  source: bulkPlace('global', tensor.base),
  destination: bulkPlace('shared::cluster', data),
  reduction: null,
  barrier: 0,
  multicast: null,
};
const bulkToGlobal: Instruction = {
  op: 'cp.async.bulk.global',
  source: bulkPlace('shared::cta', data),
  destination: bulkPlace('global', tensor.base),
  reduction: null,
};
/** Stores of lanes into the shared memory of their own CTA. */
const remoteStore = (op: 'st.async' | 'red.async', registers = fragment()): Instruction => ({
  op,
  destination: places('shared::cluster', data),
  data: registers,
  reduction: op === 'st.async' ? null : { operation: 'add', type: 'u32' },
  barrier: 0,
});

const conflicts: Partial<Record<Opcode, Partial<Record<'reads' | 'writes', Conflict>>>> = {
  'ld.shared': { reads: { suspect: ldShared, partner: stShared } },
  'st.shared': { writes: { suspect: stShared, partner: ldShared } },
  ld: { reads: { suspect: transfer('ld', sharedPlaces), partner: stShared } },
  st: { writes: { suspect: transfer('st', sharedPlaces), partner: ldShared } },
  // What writes where it reads shows its read where nobody has written.
  atom: {
    reads: { suspect: lanesAtomic('atom') },
    writes: { suspect: lanesAtomic('atom'), partner: ldShared },
  },
  red: {
    reads: { suspect: lanesAtomic('red') },
    writes: { suspect: lanesAtomic('red'), partner: ldShared },
  },
  ldmatrix: { reads: { suspect: { op: 'ldmatrix', ...matrices }, partner: stShared } },
  stmatrix: { writes: { suspect: { op: 'stmatrix', ...matrices }, partner: ldShared } },
  'cp.async': {
    reads: {
      suspect: laneCopy(tensor.base),
      partner: transfer('st', places('global', tensor.base)),
    },
    writes: { suspect: laneCopy(tensor.base), partner: ldShared },
  },
  'cp.async.bulk.shared': {
    reads: { suspect: bulkToShared, partner: transfer('st', places('global', tensor.base)) },
    writes: { suspect: bulkToShared, partner: ldShared },
  },
  'cp.async.bulk.global': {
    reads: { suspect: bulkToGlobal, partner: stShared },
    writes: { suspect: bulkToGlobal, partner: transfer('ld', places('global', tensor.base)) },
  },
  'st.async': { writes: { suspect: remoteStore('st.async'), partner: ldShared } },
  'red.async': {
    reads: { suspect: remoteStore('red.async') },
    writes: { suspect: remoteStore('red.async'), partner: ldShared },
  },
  'clusterlaunchcontrol.try_cancel': {
    writes: {
      suspect: {
        op: 'clusterlaunchcontrol.try_cancel',
        destination: data,
        barrier: 0,
        isMulticast: false,
      },
      partner: ldShared,
    },
  },
  'tcgen05.alloc': {
    writes: {
      suspect: allocate(32, place.address),
      partner: words('ld.shared', place.address),
    },
  },
  'tcgen05.ld': { reads: { suspect: ldTensor(), partner: stTensor() } },
  'tcgen05.st': { writes: { suspect: stTensor(), partner: ldTensor() } },
  'tcgen05.cp': {
    reads: { suspect: copy, partner: stShared },
    writes: { suspect: copy, partner: ldTensor() },
  },
  'tcgen05.mma': {
    reads: { suspect: mma, partner: stShared },
    writes: { suspect: mma, partner: ldTensor() },
  },
  'wgmma.mma_async': {
    reads: { suspect: wgmma(), partner: stShared },
  },
  'cp.async.bulk.tensor.shared.global': {
    reads: {
      suspect: {
        op: 'cp.async.bulk.tensor.shared.global',
        ...placedBox,
        destination: data,
        barrier: 0,
      },
      partner: transfer('st', places('global', tensor.base)),
    },
    writes: {
      suspect: {
        op: 'cp.async.bulk.tensor.shared.global',
        ...box,
        destination: data,
        barrier: 0,
      },
      partner: ldShared,
    },
  },
  'cp.async.bulk.tensor.global.shared': {
    writes: {
      suspect: { op: 'cp.async.bulk.tensor.global.shared', ...placedBox, source: data },
      partner: transfer('ld', places('global', tensor.base)),
    },
    reads: {
      suspect: { op: 'cp.async.bulk.tensor.global.shared', ...box, source: data },
      partner: stShared,
    },
  },
};

/** The races of a run that name the suspect; without a partner, its reads of what nobody has written. */
function racesOf(
  warp0: readonly Instruction[],
  partner: Instruction | undefined,
  options: RunOptions = {},
) {
  const meetAll = meet('bar.sync', 1, partnerWarp + 1);
  // An operation of a warpgroup takes all four warps, which are those before the partner.
  const ofGroup = warp0.some(({ op }) => op === 'wgmma.mma_async');
  const { findings } = runProgram(
    {
      memory,
      barriers: { bytes: 1 },
      warps: Array.from({ length: partnerWarp + 1 }, (_, warp) => {
        if (warp === 0)
          // It never frees its columns: that would come in no order with what the suspect does.
          return [allocate(columns, 8), expectBytes(0, boxBytes.a), meetAll, ...warp0, meetAll];
        const isPartner = warp === partnerWarp && partner !== undefined;
        if (ofGroup && warp < partnerWarp) return [meetAll, ...warp0, meetAll];
        return isPartner ? [meetAll, partner, meetAll] : [meetAll, meetAll];
      }),
    },
    options,
  );
  return findings.filter(
    ({ kind, accesses }) =>
      kind === (partner === undefined ? 'uninitialised' : 'race') &&
      accesses.some(({ site }) => site === suspectSite),
  );
}

/** Runs with a record that lacks something, and mends it. */
function without<Result>(
  op: Opcode,
  member: 'reads' | 'writes',
  what: 'registers' | 'memory',
  run: () => Result,
): Result {
  const record = instructionRecords[op] as { -readonly [Key in 'reads' | 'writes']: object };
  const whole = record[member];
  record[member] = { ...whole, [what]: nothing[what] };
  try {
    return run();
  } finally {
    record[member] = whole;
  }
}

describe('the records of the instructions', () => {
  it.each(opcodes)('say everything: %s', (op) => {
    const record = instructionRecords[op] as InstructionRecord<Opcode>;
    expect(Object.keys(record).sort()).toEqual(
      ['describe', 'execute', 'isWait', 'meaning', 'reads', 'ready', 'unit', 'writes'].sort(),
    );
    const { reads, writes, ready, execute, describe: details } = record;
    const { isReady, waitsFor, readyTime } = ready;
    for (const member of [execute, details, isReady, waitsFor, readyTime])
      expect(member).toBeTypeOf('function');
    for (const { registers, memory } of [reads, writes]) {
      expect(registers).toBeTypeOf('function');
      expect(memory).toBeTypeOf('function');
    }
  });

  it('do not compile with a member left out', () => {
    const { writes, ...rest } = instructionRecords['st.shared'];
    // @ts-expect-error: it does not say what it writes
    const incomplete: InstructionRecord<'st.shared'> = rest;
    expect({ ...incomplete, writes }).toEqual(instructionRecords['st.shared']);
  });
});

describe('a race through an instruction that touches memory', () => {
  const sides = (['reads', 'writes'] as const).flatMap((side) =>
    opcodes
      .filter((op) => instructionRecords[op][side].memory !== noMemory)
      .map((op) => ({ op, side })),
  );

  it('is planted for all of them', () => {
    const planted = opcodes.flatMap((op) =>
      Object.keys(conflicts[op] ?? {}).map((side) => `${op} ${side}`),
    );
    expect(planted.sort()).toEqual(sides.map(({ op, side }) => `${op} ${side}`).sort());
  });

  it.each(sides)('is found by what it $side, and by that alone: $op', ({ op, side }) => {
    const { suspect, partner } = conflicts[op]![side]!;
    const run = () => racesOf([{ ...suspect, site: suspectSite }], partner);
    expect(run()).not.toEqual([]);
    expect(without(op, side, 'memory', run)).toEqual([]);
  });
});

describe('registers that a tcgen05.ld fills', () => {
  const memory = createByteStore(128);
  const addresses = Int32Array.from({ length: 32 }, (_, lane) => lane);
  const global = (op: 'ld.global' | 'st.global', registers: Fragment): Instruction => ({
    op,
    memory,
    addresses,
    fragment: registers,
    name: 'G',
  });
  /** For every instruction with registers, one that uses these. */
  const uses: Partial<
    Record<Opcode, (registers: Fragment, side: 'reads' | 'writes') => Instruction>
  > = {
    'tcgen05.ld': (registers) => ldTensor(0, registers),
    'tcgen05.st': (registers) => stTensor(0, registers),
    'ld.shared': (registers) => words('ld.shared', data, registers),
    'st.shared': (registers) => words('st.shared', data, registers),
    ld: (registers) => transfer('ld', sharedPlaces, registers),
    st: (registers) => transfer('st', sharedPlaces, registers),
    atom: (registers, side) => ({
      ...lanesAtomic('atom'),
      [side === 'reads' ? 'operands' : 'result']: registers,
    }),
    red: (registers) => ({ ...lanesAtomic('red'), operands: registers }),
    'st.async': (registers) => remoteStore('st.async', registers),
    'red.async': (registers) => remoteStore('red.async', registers),
    ldmatrix: (registers) => ({ op: 'ldmatrix', ...matrices, matrices: 1, data: registers }),
    stmatrix: (registers) => ({ op: 'stmatrix', ...matrices, matrices: 1, data: registers }),
    'ld.global': (registers) => global('ld.global', registers),
    'st.global': (registers) => global('st.global', registers),
    'wgmma.mma_async': (registers, side) =>
      side === 'reads' ? wgmma(fragment(4), registers) : wgmma(registers),
    registers: (registers) => ({ op: 'registers', reads: [registers], execute: () => ({}) }),
  };
  const sides = (['reads', 'writes'] as const).flatMap((side) =>
    opcodes
      .filter((op) => instructionRecords[op][side].registers !== noRegisters)
      .map((op) => ({ op, side })),
  );

  it('have an instruction of each kind that uses them', () => {
    expect(Object.keys(uses).sort()).toEqual([...new Set(sides.map(({ op }) => op))].sort());
  });

  it.each(sides)('are waited for by what it $side, and by that alone: $op', ({ op, side }) => {
    const registers = fragment();
    const use = { ...uses[op]!(registers, side), site: suspectSite };
    // The PTX ISA asks for tcgen05.wait::ld before such a use.
    const run = () =>
      racesOf([ldTensor(0, registers), use], stShared, { model: memoryModels.ptx }).filter(
        ({ message }) => message.includes('before tcgen05.wait::ld'),
      );
    expect(run()).not.toEqual([]);
    expect(without(op, side, 'registers', run)).toEqual([]);
  });
});
