import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  clusterAddress,
  createMmaUnits,
  memoryModels,
  randomScheduler,
  tensorAddress,
  type Instruction,
  type MemoryModelName,
  type RunOptions,
} from '../../src/machine/index.js';
import {
  arrive,
  data,
  expectBytes,
  fragment,
  kindsOf,
  look,
  meet,
  messagesOf,
  runProgram,
  scheduleNamed,
  wait,
  words,
  type SmallProgram,
} from './launch.js';
import {
  allocate,
  boxBytes,
  commitTo,
  deallocate,
  halfRow,
  loadTile,
  matrixMap,
  moveRows,
  multiply,
  multiplyInPair,
  productOf,
  randomPatterns,
  tile,
} from './tile-product.js';

const place = { a: 4096, b: 8192 };
const columns = 64;
const [a, b] = [randomPatterns(tile.m * tile.k, 3), randomPatterns(2 * tile.n * tile.k, 4)];
const product = productOf(a, b, { m: tile.m, n: tile.n * 2, k: tile.k });
const mmaUnits = createMmaUnits('sm_100');
const [loaded, done, doneToo] = [0, 8, 16];
const waitLd = { op: 'tcgen05.wait::ld', site: 'loads awaited' } as const;
const waitSt = { op: 'tcgen05.wait::st', site: 'stores awaited' } as const;

/**
 * Four warps, each with its part of tensor memory. They fill columns 0 to 7 with the bits of A, then
 * warp 0 does `issued`, waits for a barrier, and all read D from `column` on.
 */
function around(
  issued: readonly Instruction[],
  {
    column = 32,
    waits = [wait(done, 0, 'done: waits')] as readonly Instruction[],
    reads = true,
  } = {},
): { program: SmallProgram; rows: Uint32Array[] } {
  const [aMap, bMap] = [matrixMap('A', a, tile.k, tile.m), matrixMap('B', b, tile.k, 2 * tile.n)];
  const rows = [0, 1, 2, 3].map(() => fragment(halfRow));
  const words = new Uint32Array(a.buffer);
  const body = (warp: number): Instruction[] => {
    const aRows = fragment(
      halfRow,
      (lane, i) => words[(16 * warp + (lane % 16)) * 8 + (lane < 16 ? 0 : 4) + i],
    );
    const isFirst = warp === 0;
    return [
      ...(isFirst ? [allocate(columns, data)] : []),
      meet('bar.sync', 1, 4),
      moveRows('tcgen05.st', warp, 0, aRows, 'A: stored'),
      waitSt,
      { op: 'tcgen05.fence::before_thread_sync' },
      meet('bar.sync', 1, 4),
      { op: 'tcgen05.fence::after_thread_sync' },
      ...(isFirst
        ? [
            expectBytes(loaded, boxBytes.a + 2 * boxBytes.b),
            loadTile(aMap, [0, 0], place.a, loaded),
            loadTile(bMap, [0, 0], place.b, loaded),
            wait(loaded, 0, 'loaded: waits'),
            ...issued,
          ]
        : []),
      ...(isFirst ? waits : []),
      { op: 'tcgen05.fence::after_thread_sync' },
      { op: 'tcgen05.fence::before_thread_sync' },
      meet('bar.sync', 1, 4),
      { op: 'tcgen05.fence::after_thread_sync' },
      ...(reads ? [moveRows('tcgen05.ld', warp, column, rows[warp], 'D: loaded'), waitLd] : []),
      { op: 'tcgen05.fence::before_thread_sync' },
      meet('bar.sync', 1, 4),
      ...(isFirst ? [deallocate(columns)] : []),
    ];
  };
  const barriers = { loaded: 1, done: 1, doneToo: 1 };
  const program = { barriers, warps: [0, 1, 2, 3].map(body) };
  return { program, rows: rows.map(({ words }) => words) };
}

function found(
  issued: readonly Instruction[],
  options: RunOptions & Parameters<typeof around>[1] = {},
): string[] {
  return kindsOf(runProgram(around(issued, options).program, { mmaUnits, ...options }));
}

/** [m][8] of the rows that the warps have read. */
function matrixOf(rows: readonly Uint32Array[]): Uint32Array {
  return Uint32Array.from({ length: tile.m * tile.n }, (_, i) => {
    const [row, column] = [Math.floor(i / tile.n), i % tile.n];
    const lane = (row % 16) + (column < halfRow ? 0 : 16);
    return rows[Math.floor(row / 16)][lane * halfRow + (column % halfRow)];
  });
}

/** The left or the right eight columns of the product. */
function columnsOfProduct(first: number): Uint32Array {
  return product.filter((_, i) => Math.floor((i % (2 * tile.n)) / tile.n) * tile.n === first);
}

const fromShared = (d: number, accumulate = false, changes = {}) =>
  multiply({ ...place, d }, accumulate, changes);
const fromTensor = (aColumn: number, d: number, accumulate = false) =>
  multiply({ a: aColumn, b: place.b, d }, accumulate, {
    aInTensorMemory: true,
    site: 'D: multiplied from tensor memory',
  });

describe('tcgen05.mma and tcgen05.commit', () => {
  it.each([
    ...adversarialSchedulers(4),
    ...Array.from({ length: 10 }, (_, seed) => randomScheduler(seed)),
  ])('give the product to who waits for the commit: $name', (scheduler) => {
    for (const issued of [fromShared(32), fromTensor(0, 32)]) {
      const { program, rows } = around([issued, commitTo(done)]);
      const run = runProgram(program, { mmaUnits, scheduler });
      expect(messagesOf(run)).toEqual([]);
      expect(matrixOf(rows)).toEqual(columnsOfProduct(0));
    }
  });

  it('are asynchronous: who does not wait finds what was there', () => {
    const { program, rows } = around([fromShared(32), commitTo(done)], { waits: [] });
    const late = scheduleNamed('mma late', 4);
    expect(kindsOf(runProgram(program, { mmaUnits, scheduler: late }))).toContain('uninitialised');
    expect(matrixOf(rows).every((bits) => bits === 0)).toBe(true);
    expect(found([fromShared(32), commitTo(done)], { waits: [] })).toContain('race');
    expect(found([fromShared(32)])).toContain('deadlock');
    // A commit tracks what was issued before it, not after.
    expect(found([commitTo(done), fromShared(32)])).toContain('race');
  });

  it('arrive in the order of commits, so that the last one speaks for all', () => {
    const issued = [fromShared(32), commitTo(doneToo), fromShared(32, true), commitTo(done)];
    for (const scheduler of adversarialSchedulers(4))
      expect(found(issued, { scheduler }), scheduler.name).toEqual([]);
    const waits = [wait(doneToo, 0)];
    expect(found(issued, { waits, reads: false })).toContain('unfinished-operation');
  });

  const models = Object.keys(memoryModels) as MemoryModelName[];
  it.each([
    {
      what: 'into one accumulator',
      issued: [fromShared(32), fromShared(32, true), commitTo(done)],
      legal: models,
    },
    {
      what: 'that write what an earlier one reads as A',
      issued: [fromTensor(0, 32), fromShared(0), commitTo(done)],
      legal: ['practice', 'ptx', 'pipe'],
    },
    {
      what: 'that read as A what an earlier one writes',
      issued: [fromShared(16), fromTensor(16, 32), commitTo(done)],
      legal: ['pipe'],
    },
    {
      what: 'into one accumulator in different shapes',
      issued: [fromShared(32, false, { n: 16 }), fromShared(32, true), commitTo(done)],
      legal: ['pipe'],
    },
    {
      what: 'into different accumulators from the same operands',
      issued: [fromShared(32), fromShared(48), commitTo(done)],
      legal: models,
    },
  ])('are ordered as the memory model says: MMAs $what', ({ issued, legal }) => {
    for (const name of models)
      for (const scheduler of [
        scheduleNamed('bulk-load early', 4),
        scheduleNamed('youngest operation first', 4),
      ]) {
        const kinds = found(issued, { model: memoryModels[name], scheduler });
        expect(kinds.includes('race'), name).toBe(!legal.includes(name));
        if (legal.includes(name)) expect(kinds, name).toEqual([]);
      }
  });

  it('have several results where nothing orders them, and one where the model does', () => {
    const issued = [fromShared(16), fromTensor(16, 32), commitTo(done)];
    const results = (name: MemoryModelName) =>
      new Set(
        [
          ...adversarialSchedulers(4),
          ...Array.from({ length: 10 }, (_, i) => randomScheduler(i)),
        ].map((scheduler) => {
          const { program, rows } = around(issued);
          const model = memoryModels[name];
          runProgram(program, { mmaUnits, model, scheduler, races: false });
          return matrixOf(rows).join();
        }),
      ).size;
    expect(results('practice')).toBe(2);
    expect(results('pipe')).toBe(1);
  });

  it('need their columns allocated and their shapes to exist', () => {
    expect(found([fromShared(64), commitTo(done)], { reads: false })).toEqual([
      'tensor-allocation',
    ]);
    expect(found([fromTensor(64, 32), commitTo(done)], { reads: false })).toEqual([
      'tensor-allocation',
    ]);
    expect(found([fromShared(60), commitTo(done)], { reads: false })).toEqual([
      'tensor-allocation',
    ]);
    expect(found([fromShared(32, false, { n: 12 }), commitTo(done)], { reads: false })).toEqual([
      'instruction-shape',
    ]);
    expect(
      found([multiplyInPair({ ...place, d: 32 }, false), commitTo(done)], { reads: false }),
    ).toEqual(['instruction-shape']);
    const unaligned = multiply({ a: place.a + 8, b: place.b, d: 32 }, false);
    expect(found([unaligned, commitTo(done)], { reads: false })).toEqual(['misaligned']);
    const beyond = multiply({ a: 232_448 - 1024, b: place.b, d: 32 }, false);
    expect(found([beyond, commitTo(done)], { reads: false })).toEqual(['shared-overflow']);
  });

  it('are counted after what came before their issue, though they tell of tensor memory alone', () => {
    // A commit without an MMA, of a warp that has waited for the phase before.
    const program = (waits: boolean): SmallProgram => ({
      barriers: { both: 2 },
      warps: [0, 1].map(() => [
        commitTo(0),
        ...(waits ? [wait(0, 0)] : []),
        commitTo(0),
        wait(0, 1),
      ]),
    });
    expect(messagesOf(runProgram(program(true)))).toEqual([]);
    expect(kindsOf(runProgram(program(false)))).toContain('phase');
    // What a warp has written to shared memory is not told.
    const told = (how: Instruction): SmallProgram => ({
      barriers: { full: 1 },
      warps: [
        [words('st.shared', data), how, wait(0, 0)],
        [wait(0, 0), words('ld.shared', data)],
      ],
    });
    expect(kindsOf(runProgram(told(commitTo(0))))).toEqual(['race']);
    expect(kindsOf(runProgram(told(arrive(0))))).toEqual([]);
  });

  it('keep their operands until they are done', () => {
    const map = matrixMap('A', a, tile.k, tile.m);
    const overwrite = (...before: Instruction[]) => [
      ...[fromShared(32), commitTo(done), ...before],
      ...[expectBytes(loaded, boxBytes.a), loadTile(map, [0, 0], place.a, loaded)],
      ...[wait(loaded, 1), fromShared(32, true), commitTo(doneToo), wait(doneToo, 0)],
    ];
    const waits: Instruction[] = [];
    expect(found(overwrite(), { waits })).toContain('race');
    expect(found(overwrite(wait(done, 0)), { waits })).toEqual([]);
  });
});

describe('tcgen05.cp', () => {
  // 128 rows of 32 bytes: A's box and B's, and what lies between, which is written too.
  const source = { address: place.a, leadingByteOffset: 2048, strideByteOffset: 128 } as const;
  const copy = (address: number): Instruction => ({
    op: 'tcgen05.cp',
    group: 1,
    shape: '128x256b',
    address,
    name: 'A',
    source: { ...source, swizzle: 'none', major: 'k' },
    site: 'A: copied',
  });
  const filler = matrixMap('A', a, tile.k, tile.m);
  const fill = [
    expectBytes(doneToo, boxBytes.a),
    loadTile(filler, [0, 0], place.a + boxBytes.a, doneToo),
    wait(doneToo, 0),
  ];

  it.each(['copy late', 'mma early', 'all operations late', 'youngest operation first'])(
    'comes before the MMAs after it: %s',
    (schedule) => {
      const issued = [...fill, copy(16), fromTensor(16, 32), commitTo(done)];
      for (const [name, model] of Object.entries(memoryModels)) {
        const scheduler = scheduleNamed(schedule, 4);
        expect(found(issued, { model, scheduler }), name).toEqual([]);
      }
    },
  );

  it('copies what shared memory holds, when its commit says so', () => {
    // Unswizzled chunk 0 of a row of cp: 16 bytes of the swizzled box, which the words tell.
    const { program, rows } = around([...fill, copy(32), commitTo(done)]);
    for (const scheduler of adversarialSchedulers(4)) {
      expect(messagesOf(runProgram(program, { scheduler })), scheduler.name).toEqual([]);
      const bits = [...new Uint32Array(a.buffer)].sort().join();
      // Lane groups of 16 of each warp hold rows 32 w to 32 w + 15 of 128.
      expect(rows.every((part) => part.every((word) => bits.includes(String(word))))).toBe(true);
      expect(rows[0].some((word) => word !== 0)).toBe(true);
    }
    expect(found([...fill, copy(32), commitTo(done)], { waits: [] })).toContain('race');
    expect(found([...fill, copy(32)], { waits: [], reads: false })).toContain(
      'unfinished-operation',
    );
  });

  it('comes after an MMA in practice, and in no order by the ISA', () => {
    // What the MMA reads as A may be overwritten before it has been read.
    const issued = [...fill, fromTensor(0, 32), copy(0), commitTo(done)];
    for (const [name, model] of Object.entries(memoryModels)) {
      const isOrdered = name === 'practice' || name === 'pipe';
      expect(found(issued, { model }).includes('race'), name).toBe(!isOrdered);
    }
  });

  it.each(['copy early', 'youngest operation first', 'all operations late'])(
    'leaves an earlier MMA the A that was there: %s',
    (schedule) => {
      const bits = (instructions: readonly Instruction[]) => {
        const { program, rows } = around(instructions);
        const scheduler = scheduleNamed(schedule, 4);
        expect(messagesOf(runProgram(program, { scheduler }))).toEqual([]);
        return rows.map((part) => [...part]);
      };
      const alone = bits([...fill, fromTensor(0, 32), commitTo(done)]);
      expect(bits([...fill, fromTensor(0, 32), copy(0), commitTo(done)])).toEqual(alone);
    },
  );
});

describe('a pair of CTAs', () => {
  const [pairA, pairB] = [randomPatterns(2 * tile.m * tile.k, 5), b];
  const pairProduct = productOf(pairA, pairB, { m: 2 * tile.m, n: 2 * tile.n, k: tile.k });
  const [full, computed] = [0, 8];
  const bytes = 2 * (boxBytes.a + boxBytes.b);

  /** Both load their halves on the leader's barrier; it multiplies for both and tells both. */
  function pairProgram(
    changes: { readonly ctas?: readonly number[]; readonly meets?: boolean; column?: number } = {},
  ): { program: SmallProgram; rows: Uint32Array[][] } {
    const { ctas = [0, 1], meets = true, column = 0 } = changes;
    const aMap = matrixMap('A', pairA, tile.k, tile.m);
    const bMap = matrixMap('B', pairB, tile.k, tile.n);
    const rows = [0, 1].map(() => [0, 1, 2, 3].map(() => fragment(8)));
    const end: Instruction[] = meets
      ? [{ op: 'barrier.cluster.arrive' }, { op: 'barrier.cluster.wait' }]
      : [];
    const body = (warp: number) =>
      function* ({ cta }: { cta: number }): Generator<Instruction> {
        if (warp === 0) yield { ...allocate(32, data), group: 2 } as Instruction;
        yield { op: 'barrier.cluster.arrive' };
        yield { op: 'barrier.cluster.wait' };
        if (warp === 0) {
          const barrier = clusterAddress(0, full);
          if (cta === 0) yield expectBytes(full, bytes);
          yield loadTile(aMap, [0, cta * tile.m], place.a, barrier);
          yield loadTile(bMap, [0, cta * tile.n], place.b, barrier);
          if (cta === 0) {
            yield wait(full, 0);
            yield multiplyInPair({ ...place, d: column }, false);
            yield commitTo(computed, 'D: committed', ctas);
          }
        }
        yield wait(computed, 0, 'D: waits');
        const address = tensorAddress(32 * warp, column);
        const transfer = { shape: '32x32b', repeat: 8 } as const;
        const fragmentOfWarp = rows[cta][warp];
        yield { op: 'tcgen05.ld', transfer, address, fragment: fragmentOfWarp, name: 'D' };
        yield waitLd;
        yield look(fragmentOfWarp, () => undefined);
        yield* end;
        if (warp === 0) {
          if (!meets) yield meet('bar.sync', 1, 1);
          yield { ...deallocate(32), group: 2 } as Instruction;
        }
      };
    const barriers = { full: 1, computed: 1 };
    const program: SmallProgram = { ctas: 2, barriers, warps: [0, 1, 2, 3].map(body) };
    return { program, rows: rows.map((cta) => cta.map(({ words }) => words)) };
  }

  /** [row][column]: 64 rows in each CTA; lanes 64 to 127 hold the right half of the columns. */
  const productOfPair = (rows: readonly (readonly Uint32Array[])[]): Uint32Array =>
    Uint32Array.from({ length: pairProduct.length }, (_, i) => {
      const [row, column] = [Math.floor(i / 16), i % 16];
      const lane = (row % 64) + (column < 8 ? 0 : 64);
      return rows[Math.floor(row / 64)][Math.floor(lane / 32)][(lane % 32) * 8 + (column % 8)];
    });

  it.each([
    ...adversarialSchedulers(4),
    ...Array.from({ length: 5 }, (_, seed) => randomScheduler(seed)),
  ])('multiplies for both, and a multicast commit tells both: $name', (scheduler) => {
    const { program, rows } = pairProgram();
    const run = runProgram(program, { mmaUnits, scheduler });
    expect(messagesOf(run)).toEqual([]);
    expect(productOfPair(rows)).toEqual(pairProduct);
  });

  it('needs half as many columns as D has', () => {
    // 16 columns of D in 8 of tensor memory, the last of the 32 that are allocated.
    const { program, rows } = pairProgram({ column: 24 });
    expect(messagesOf(runProgram(program, { mmaUnits }))).toEqual([]);
    expect(productOfPair(rows)).toEqual(pairProduct);
    const beyond = runProgram(pairProgram({ column: 25 }).program, { mmaUnits });
    expect(messagesOf(beyond)).toContainEqual(
      expect.stringContaining('columns 25 to 32 of CTA 0 are not allocated'),
    );
  });

  it('waits for ever where the commit tells one CTA only', () => {
    const run = runProgram(pairProgram({ ctas: [0] }).program, { mmaUnits });
    expect(kindsOf(run)).toContain('deadlock');
    expect(run.findings.find(({ kind }) => kind === 'deadlock')?.message).toContain(
      'CTA 1 warp 0 at "D: waits" waits for parity 0 of computed',
    );
  });

  it('must not free, or end, before all of it have read', () => {
    for (const scheduler of adversarialSchedulers(4)) {
      const run = runProgram(pairProgram({ meets: false }).program, { mmaUnits, scheduler });
      expect(kindsOf(run), scheduler.name).not.toEqual([]);
    }
  });
});
