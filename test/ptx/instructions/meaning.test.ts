import { describe, expect, it } from 'vitest';
import type { Effect } from '../../../src/isa/index.js';
import {
  createByteStore,
  createTensorMap,
  meaningOf,
  type TensorMap,
} from '../../../src/machine/index.js';
import type {
  IssuingWarp,
  VisibleOperation,
  WarpOperation,
} from '../../../src/ptx/instructions/index.js';
import { controlInstructions, createProgram } from '../../../src/ptx/program/index.js';
import { createRowFinder } from '../../../src/ptx/program/tables.js';
import { ptxInstructions } from '../../../src/ptx/run/run-launch.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { wordSource } from '../../hardware/tensor-core/random-patterns.js';
import { testSeed } from '../../setup/effort.js';
import { instructionSamples } from './instruction-samples.js';
import { createTestWarp } from './warp/warp-registers.js';

const words: readonly Effect[] = [
  ...(['moves', 'is', 'chooses', 'decides', 'confirmed', 'loses', 'none'] as const),
];
const tables = ptxInstructions('sm_103');
const rows = [...tables.warp, ...tables.visible];
const findRow = createRowFinder(tables);

/** The operation of an instruction in a program of its own; all registers are 0. */
function lowered(instruction: string): VisibleOperation | WarpOperation {
  const target = /^(wgmma|mma\.sp)/.test(instruction) ? 'sm_90' : 'sm_103';
  const text = `.version 9.2
.target ${target}a
.address_size 64
.visible .entry k()
{
  .reg .pred p, q; .reg .b32 r<12>; .reg .b64 d<8>; .reg .f32 f<8>; .reg .b128 q<2>;
  ${instruction}
  ret;
}
`;
  const place = { tables: ptxInstructions(target), place: () => 4096, file: 'k.ptx' };
  const items = createProgram(parsePtx(text), 'k', place).entry.blocks.flatMap(
    (block) => block.items,
  );
  const found = items.find(({ kind }) => kind === 'warp' || kind === 'visible');
  if (found === undefined || !('operation' in found)) throw new Error(`no ${instruction}`);
  return found.operation;
}

/** Maps of a tensor: sums of the elements of the first round. */
const maps = (['f32', 'u32'] as const).map((elementType) => ({
  ...createTensorMap({
    name: 'X',
    place: { store: createByteStore(128), offset: 0 },
    elementBytes: 4,
    elementType,
    dims: [32, 1],
    strides: [128],
    box: [32, 1],
    swizzle: 'none',
  }),
  address: 4096,
}));

/** A warp whose first lane alone issues, and whose parameters are that map wherever they are read. */
function warpOf(map: TensorMap): IssuingWarp {
  return {
    registers: createTestWarp().registers,
    lanes: 1,
    cta: 0,
    warp: 0,
    warps: 4,
    threads: 128,
    lend: (slots) => createByteStore(128 * slots.length),
    registerFences: { touch: () => {}, fence: () => {}, multiply: () => null },
    tensorMaps: {
      parameterAt: () => ({ map, address: 0 }),
      inMemory: () => ({ map, address: 0 }),
      release: () => {},
      releaseAll: () => {},
      acquire: () => {},
    },
  };
}

/** Rows that write what no instruction of the machine has made, or make something else of what it moves. */
const ownMeaning: Readonly<Record<string, Effect>> = {
  createpolicy: 'loses',
  'mbarrier.pending_count': 'decides',
  'mbarrier.try_wait': 'decides',
  'tensormap.replace.tile': 'loses',
  'fence.proxy.tensormap::generic': 'none',
};

/** What the machine's instructions leave, for one that others see; what a warp instruction says of itself. */
function effectsOf(operation: VisibleOperation | WarpOperation): readonly Effect[] {
  if ('meaning' in operation) return [operation.meaning];
  const said = maps.map((map) =>
    [...operation.issue(warpOf(map))].map((instruction) => {
      expect(instruction).not.toMatchObject({ op: 'report' });
      return meaningOf(instruction);
    }),
  );
  const values = new Set(said.flat().filter((word) => word !== 'none'));
  return values.size === 0 ? ['none'] : [...values];
}

/** For each row, the words of its samples. */
function saidBySamples(): ReadonlyMap<string, ReadonlySet<Effect>> {
  const said = new Map(rows.map(({ name }) => [name, new Set<Effect>()]));
  for (const sample of instructionSamples) {
    const [opcode, ...modifiers] = sample.split(/[ ;]/)[0].split('.');
    const { name } = findRow({ opcode, modifiers })!.row;
    for (const word of effectsOf(lowered(sample))) said.get(name)!.add(word);
  }
  return said;
}

describe('what the values of an instruction stand for', () => {
  it('is one of the words, in every row', () => {
    for (const { meaning } of [...rows, ...Object.values(controlInstructions)])
      expect([meaning].flat().every((word) => words.includes(word))).toBe(true);
  });

  it('is in a row what the instructions of the machine say, of all of its forms', () => {
    const said = saidBySamples();
    const sorted = (list: Iterable<Effect>) => [...list].sort();
    const ofSamples = rows.map(({ name }) => [
      name,
      ...sorted(name in ownMeaning ? [ownMeaning[name]] : said.get(name)!),
    ]);
    expect(ofSamples).toEqual(rows.map(({ name, meaning }) => [name, ...sorted([meaning].flat())]));
  });

  it('is nothing only where no register is written', () => {
    for (const sample of instructionSamples) {
      const operation = lowered(sample);
      if (!effectsOf(operation).every((word) => word === 'none')) continue;
      const lent = 'lends' in operation ? operation.lends.flat() : [];
      const [name] = sample.split(/[ ;]/);
      const isOwn = Object.keys(ownMeaning).some((own) => name.startsWith(own));
      expect([name, isOwn ? 0 : operation.writes.length + lent.length]).toEqual([name, 0]);
    }
  });
});

describe('a warp instruction', () => {
  const bytesOf = ({ buffer, byteOffset, byteLength }: Uint32Array) =>
    new Uint8Array(buffer, byteOffset, byteLength);

  /** The bytes of the registers that it writes, predicates apart, from bytes of those that it reads. */
  function written(operation: WarpOperation, byteAt: (i: number) => number): number[] {
    const { registers } = createTestWarp();
    const views = (slots: WarpOperation['reads']) =>
      slots.filter(({ width }) => width !== 'pred').map((slot) => bytesOf(registers.words(slot)));
    let read = 0;
    for (const view of views(operation.reads)) view.forEach((_, i) => (view[i] = byteAt(read++)));
    expect(operation.execute(registers, -1)).toBe(null);
    return views(operation.writes).flatMap((view) => [...view]);
  }

  const operations = instructionSamples
    .filter((sample) => 'execute' in lowered(sample))
    .map((sample) => [sample, lowered(sample) as WarpOperation] as const);
  const ofMeaning = (word: Effect) => operations.filter(([, { meaning }]) => meaning === word);

  it.each(ofMeaning('moves'))('that moves bytes takes no notice of their values: %s', (_, one) => {
    const next = wordSource(testSeed);
    const bytes = Array.from({ length: 4096 }, () => next() & 0xff);
    const plain = written(one, (i) => bytes[i]);
    expect(written(one, (i) => bytes[i] ^ 0x5a)).toEqual(plain.map((byte) => byte ^ 0x5a));
    expect(new Set(plain).size).toBeGreaterThan(2);
  });

  it.each(ofMeaning('chooses'))('that chooses has the bits of a lane: %s', (_, one) => {
    const next = wordSource(testSeed);
    // The first bits of a number that is not a NaN.
    const words = Uint32Array.from({ length: 32 }, () => next() & 0xbfffffff);
    const [result] = new Uint32Array(
      Uint8Array.from(written(one, (i) => bytesOf(words)[i])).buffer,
    );
    expect([...words]).toContain(result);
  });
});
