import { describe, expect, it } from 'vitest';
import {
  adversarialSchedulers,
  clusterAddress,
  genericAddress,
  type AllocationOptions,
  type Instruction,
  type LaunchMemory,
  type Scheduler,
  type WarpProgram,
} from '../../src/machine/index.js';
import {
  data,
  fragment,
  kindsOf,
  launchMemory,
  look,
  meet,
  messagesOf,
  places,
  runProgram,
  transfer,
  wait,
  words,
} from './launch.js';

/** A launch with one allocation of global memory. */
function withTensor(options: Partial<AllocationOptions> = {}, localBytes = 0) {
  const memory = launchMemory(new Uint8Array(64), localBytes);
  const bytes = Uint8Array.from({ length: 4 * 4 * 8 }, (_, i) => i);
  const tensor = memory.global.allocate({
    name: 'q',
    contents: bytes,
    tensor: { shape: [2, 2, 8], elementBits: 32 },
    ...options,
  });
  return { memory, tensor, bytes };
}

function findingsOf(memory: LaunchMemory, ...instructions: Instruction[]): string[] {
  return messagesOf(runProgram({ memory, warps: [instructions] }));
}

const lane = 'CTA 0 warp 0, ld: lane';
const one = (space: Parameters<typeof places>[0], address: number, bytes = 4) =>
  places(space, address, bytes, 1);

describe('loads and stores of lanes', () => {
  it.each([1, 2, 4, 8, 16, 32])('move %i bytes between global and other memory', (bytes) => {
    const { memory, tensor, bytes: contents } = withTensor({}, 32);
    const target = memory.global.allocate({ name: 'o', contents: new Uint8Array(128) });
    const lanes = Math.min(32, contents.length / bytes);
    const count = Math.ceil(bytes / 4);
    const [first, second, third] = [fragment(count), fragment(count), fragment(count)];
    const local = { ...places('local', 0, bytes, lanes), addresses: new Float64Array(32).fill(0) };
    local.addresses.fill(-1, lanes);
    const run = runProgram({
      memory,
      warps: [
        [
          transfer('ld', places('global', tensor.base, bytes, lanes), first),
          transfer('st', places('shared::cta', data, bytes, lanes), first),
          transfer('ld', places('generic', genericAddress('shared', data), bytes, lanes), second),
          transfer('st', local, second),
          transfer(
            'ld',
            {
              ...local,
              space: 'generic',
              addresses: local.addresses.map((a) => (a < 0 ? a : genericAddress('local', a))),
            },
            third,
          ),
          transfer('st', places('generic', target.base, bytes, lanes), third),
        ],
      ],
    });
    expect(messagesOf(run)).toEqual([]);
    const moved = lanes * bytes;
    expect(target.store.bytes.slice(0, moved)).toEqual(contents.slice(0, moved));
    expect(run.counters[0].globalBytes).toEqual({ 'q → registers': moved, 'registers → o': moved });
  });

  it('read constants and parameters, and do not write them', () => {
    const memory = launchMemory(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    const table = memory.constant.allocate({ name: 'table', contents: Uint8Array.of(9, 8, 7, 6) });
    const [parameter, constant] = [fragment(), fragment()];
    expect(
      findingsOf(
        memory,
        transfer('ld', one('param', 4), parameter),
        transfer('ld', one('generic', genericAddress('const', table.base)), constant),
        transfer('st', one('const', table.base), constant, { site: 'ld' }),
        transfer('st', one('generic', genericAddress('param', 4)), constant, { site: 'ld' }),
      ),
    ).toEqual([
      `${lane} 0 writes 4 bytes at 0x${table.base.toString(16)} of const memory, which is read only`,
      `${lane} 0 writes 4 bytes at 0x4 of param memory, which is read only`,
    ]);
    expect([parameter.words[0], constant.words[0]]).toEqual([0x08070605, 0x06070809]);
  });

  it('reach the shared memory of other CTAs of the cluster', () => {
    const registers = fragment(1, (l) => l + 7);
    const seen: number[][] = [];
    const run = runProgram({
      ctas: 2,
      warps: [
        ({ cta }) =>
          cta === 0
            ? [
                transfer('st', places('shared::cluster', clusterAddress(1, data)), registers),
                { op: 'barrier.cluster.arrive' },
                { op: 'barrier.cluster.wait' },
              ]
            : [
                { op: 'barrier.cluster.arrive' },
                { op: 'barrier.cluster.wait' },
                words('ld.shared', data, registers),
                look(registers, (values) => seen.push(values)),
              ],
      ],
    });
    expect(messagesOf(run)).toEqual([]);
    expect(seen).toEqual([Array.from({ length: 32 }, (_, l) => l + 7)]);
  });
});

describe('illegal accesses are named with lane, address, allocation and element:', () => {
  const { memory, tensor } = withTensor({ isReadOnly: true });
  const freed = memory.global.allocate({ name: 'f', contents: new Uint8Array(64) });
  memory.global.free(freed);
  const scratch = memory.global.allocate({ name: 'scratch', contents: null, bytes: 56 });
  const hexadecimal = (address: number) => `0x${address.toString(16)}`;
  const cases: readonly (readonly [string, string, Instruction, string])[] = [
    [
      'behind the end',
      'out-of-bounds',
      transfer('ld', one('global', tensor.end + 16)),
      '16 bytes past the end of "q"',
    ],
    ['at the end', 'out-of-bounds', transfer('ld', one('generic', tensor.end)), 'the end of "q"'],
    [
      'before it',
      'out-of-bounds',
      transfer('ld', one('global', tensor.base - 8)),
      '8 bytes before "q"',
    ],
    [
      'across the end',
      'out-of-bounds',
      transfer('ld', one('global', scratch.base + 48, 16)),
      'byte 48 of "scratch", 8 bytes past its end',
    ],
    [
      'a null pointer',
      'out-of-bounds',
      transfer('ld', one('global', 0)),
      'address 0x0, where nothing is allocated',
    ],
    [
      'freed',
      'out-of-bounds',
      transfer('ld', one('global', freed.base + 4)),
      'byte 4 of "f", which has been freed',
    ],
    [
      'never written',
      'uninitialised',
      transfer('ld', one('global', scratch.base + 8)),
      'byte 8 of "scratch", which nobody has written',
    ],
    [
      'misaligned',
      'misaligned',
      transfer('ld', one('global', tensor.base + 4, 8)),
      `${hexadecimal(tensor.base + 4)} of global memory, no multiple of 8`,
    ],
    [
      'read only',
      'state-space',
      transfer('st', one('global', tensor.base + 4 * 21), fragment(), { site: 'ld' }),
      'element [1, 0, 5] of "q", which is read only',
    ],
    [
      'of shared memory',
      'state-space',
      transfer('ld', one('global', genericAddress('shared', 16))),
      `${hexadecimal(genericAddress('shared', 16))}, a generic address of shared memory, as one of global memory`,
    ],
    [
      'of global memory',
      'state-space',
      transfer('ld', one('shared::cta', tensor.base)),
      `${hexadecimal(tensor.base)}, a generic address of global memory, as one of shared memory`,
    ],
    [
      'of another CTA',
      'state-space',
      transfer('ld', one('shared::cta', clusterAddress(1, 16))),
      'byte 16 of the shared memory of CTA 1, which only shared::cluster reaches',
    ],
    [
      'of no CTA',
      'out-of-bounds',
      transfer('ld', one('shared::cluster', clusterAddress(3, 16))),
      'shared memory of CTA 3, which the cluster does not have',
    ],
    [
      'beyond shared memory',
      'shared-overflow',
      transfer('ld', one('shared::cta', 232_448)),
      'byte 232448 of shared memory, which has 232448',
    ],
    [
      'beyond local memory',
      'out-of-bounds',
      transfer('ld', one('local', 16)),
      'byte 16 of local memory, which has 0',
    ],
    [
      'beyond the parameters',
      'out-of-bounds',
      transfer('ld', one('param', 64)),
      'byte 64 of the parameters, which have 64',
    ],
  ];

  it.each(cases)('%s', (_what, kind, instruction, message) => {
    const run = runProgram({ memory, warps: [[instruction]] });
    const { op, bytes } = instruction as ReturnType<typeof transfer>;
    const verb = op === 'ld' ? 'reads' : 'writes';
    expect(messagesOf(run)).toEqual([`${lane} 0 ${verb} ${bytes} bytes at ${message}`]);
    expect(kindsOf(run)).toEqual([kind]);
  });

  it('lanes of one instruction together', () => {
    expect(findingsOf(memory, transfer('ld', places('global', tensor.end - 8)))).toEqual([
      `${lane} 2 reads 4 bytes at the end of "q" (and 29 more lanes)`,
    ]);
  });

  it('bytes of scratch and of local memory that have been written are known', () => {
    const fresh = launchMemory(new Uint8Array(0), 16);
    const buffer = fresh.global.allocate({ name: 'b', contents: null, bytes: 256 });
    const half = (address: number) => one('global', address, 2);
    expect(
      findingsOf(
        fresh,
        transfer('st', half(buffer.base + 66)),
        transfer('ld', half(buffer.base + 66)),
        transfer('ld', one('global', buffer.base + 64)),
        transfer('st', one('local', 4)),
        transfer('ld', one('local', 0, 8)),
      ),
    ).toEqual([
      `${lane} 0 reads 4 bytes at byte 64 of "b", which nobody has written`,
      `${lane} 0 reads 8 bytes at local memory, which nobody has written`,
    ]);
  });
});

describe('cp.async', () => {
  const copy = (from: number, sourceBytes = 4, to = data): Instruction => ({
    op: 'cp.async',
    destination: places('shared::cta', to),
    source: places('global', from),
    sourceBytes: new Int32Array(32).fill(sourceBytes),
    site: 'copies',
  });
  const commit: Instruction = { op: 'cp.async.commit_group' };
  const waitFor = (pending: number): Instruction => ({ op: 'cp.async.wait_group', pending });

  it.each([4, 2, 0])('copies %i bytes of four and fills with zeros', (sourceBytes) => {
    const { memory, tensor } = withTensor();
    const registers = fragment();
    const seen: number[][] = [];
    const run = runProgram({
      memory,
      warps: [
        [
          copy(sourceBytes === 0 ? 0 : tensor.base, sourceBytes),
          commit,
          waitFor(0),
          words('ld.shared', data, registers),
          look(registers, (values) => seen.push(values)),
        ],
      ],
    });
    expect(messagesOf(run)).toEqual([]);
    const mask = sourceBytes === 4 ? 0xffffffff : 2 ** (8 * sourceBytes) - 1;
    expect(seen).toEqual([[...tensor.store.words].map((word) => (word & mask) >>> 0)]);
  });

  it('is a race without its wait, and with a wait that lets its group pend', () => {
    const { memory, tensor } = withTensor();
    const use = words('ld.shared', data);
    const run = (...instructions: Instruction[]) => runProgram({ memory, warps: [instructions] });
    const races = (...instructions: Instruction[]) =>
      run(...instructions).findings.filter(({ kind }) => kind === 'race').length;
    expect(races(copy(tensor.base), commit, use, waitFor(0))).toBe(1);
    expect(races(copy(tensor.base), commit, waitFor(1), use, waitFor(0))).toBe(1);
    expect(races(copy(tensor.base), commit, commit, waitFor(1), use)).toBe(0);
    expect(races(copy(tensor.base), { op: 'cp.async.wait_all' }, use)).toBe(0);
    expect(kindsOf(run(copy(tensor.base)))).toEqual(['unfinished-operation']);
  });

  it('is complete for the strand that has waited for it, and for no other', () => {
    const { memory, tensor } = withTensor();
    const side = (copiesTo: number, readsAt: number) => ({
      name: `reads at ${readsAt}`,
      program: (function* (): WarpProgram {
        yield* [copy(tensor.base, 4, copiesTo), commit, waitFor(0), words('ld.shared', readsAt)];
      })(),
    });
    const kinds = (other: number, scheduler: Scheduler) => {
      const strands = [side(data, data), side(data + 128, other)];
      return kindsOf(runProgram({ memory, warps: [[{ op: 'diverge', strands }]] }, { scheduler }));
    };
    for (const scheduler of adversarialSchedulers(1)) {
      expect(kinds(data + 128, scheduler), scheduler.name).toEqual([]);
      expect(kinds(data, scheduler), scheduler.name).toContain('race');
    }
  });

  it('makes known what was copied by its arrival, and no other writes of its warp', () => {
    const { memory, tensor } = withTensor();
    const arrives: Instruction = {
      op: 'cp.async.mbarrier.arrive.noinc',
      barrier: 0,
      threads: 32,
    };
    const [written, copied] = [data + 128, data];
    const kinds = (reads: number) =>
      kindsOf(
        runProgram({
          memory,
          barriers: { full: 32 },
          warps: [
            [copy(tensor.base, 4, copied), words('st.shared', written), arrives],
            [wait(0, 0), words('ld.shared', reads)],
          ],
        }),
      );
    expect(kinds(copied)).toEqual([]);
    expect(kinds(written)).toEqual(['race']);
  });

  it.each(['cp.async.mbarrier.arrive', 'cp.async.mbarrier.arrive.noinc'] as const)(
    '%s lets other warps read',
    (op) => {
      const { memory, tensor } = withTensor();
      const registers = fragment();
      const seen: number[][] = [];
      const isExpected = op === 'cp.async.mbarrier.arrive.noinc';
      const arrives: Instruction = { op, barrier: 0, threads: 32 };
      const finish: Instruction[] = isExpected
        ? []
        : [{ op: 'mbarrier.arrive', barrier: 0, lanes: 1 }];
      const run = runProgram({
        memory,
        barriers: { full: isExpected ? 32 : 1 },
        warps: [
          [copy(tensor.base), arrives, ...finish],
          [
            wait(0, 0),
            words('ld.shared', data, registers),
            look(registers, (values) => seen.push(values)),
          ],
        ],
      });
      expect(messagesOf(run)).toEqual([]);
      expect(seen).toEqual([[...tensor.store.words]]);
    },
  );
});

describe('ldmatrix and stmatrix', () => {
  it.each([
    [false, (row: number, column: number) => [row, column] as const],
    [true, (row: number, column: number) => [column, row] as const],
  ])(
    'give lane 4r + c the elements 2c, 2c + 1 of row r; transposed: %s',
    (isTransposed, element) => {
      const { memory } = withTensor();
      const contents = new Uint16Array(4 * 64).map((_, i) => i);
      const source = memory.global.allocate({
        name: 'm',
        contents: new Uint8Array(contents.buffer),
      });
      const [rows, loaded, back] = [fragment(4), fragment(4), fragment(4)];
      const at = (from: number) => places('shared::cta', from, 16);
      const run = runProgram({
        memory,
        warps: [
          [
            transfer('ld', places('global', source.base, 16), rows),
            transfer('st', at(data), rows),
            { op: 'ldmatrix', rows: at(data), matrices: 4, isTransposed, data: loaded },
            { op: 'stmatrix', rows: at(data + 512), matrices: 4, isTransposed, data: loaded },
            transfer('ld', at(data + 512), back),
          ],
        ],
      });
      expect(messagesOf(run)).toEqual([]);
      for (let matrix = 0; matrix < 4; matrix++)
        for (let lane = 0; lane < 32; lane++) {
          const halves = [0, 1].map((half) => {
            const [row, column] = element(lane >> 2, 2 * (lane & 3) + half);
            return 64 * matrix + 8 * row + column;
          });
          expect(loaded.words[4 * lane + matrix]).toBe(halves[0] + 2 ** 16 * halves[1]);
        }
      expect(back).toEqual(rows);
    },
  );
});

describe('bytes of one word', () => {
  const halves = (first: number) => ({
    ...places('shared::cta', data + first, 2),
    addresses: Float64Array.from({ length: 32 }, (_, l) => data + first + 4 * l),
  });

  it('written by two warps are no race, and one byte written by both is unless it is the same', () => {
    const program = (second: number, value: number) => ({
      warps: [
        [
          transfer(
            'st',
            halves(0),
            fragment(1, () => 0x0505),
          ),
        ],
        [
          transfer(
            'st',
            halves(second),
            fragment(1, () => value),
          ),
        ],
      ],
    });
    expect(messagesOf(runProgram(program(2, 0x0605)))).toEqual([]);
    expect(kindsOf(runProgram(program(0, 0x0605)))).toEqual(['race']);
    expect(kindsOf(runProgram(program(0, 0x0505)))).toEqual([]);
  });

  it('and the word', () => {
    const program = (between: Instruction[]) => ({
      warps: [
        [transfer('st', halves(0)), transfer('st', halves(2)), ...between],
        [...between, words('ld.shared', data)],
      ],
    });
    expect(kindsOf(runProgram(program([])))).toContain('race');
    expect(messagesOf(runProgram(program([meet('bar.sync', 1, 2)])))).toEqual([]);
  });
});
