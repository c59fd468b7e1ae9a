import { expect, test } from 'vitest';
import type { LaneInstruction } from '../../../src/ptx/instructions/index.js';
import { createProgram, type Program } from '../../../src/ptx/program/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { RequestError } from '../../../src/request-error.js';

function lane(
  name: string,
  destinations: LaneInstruction['destinations'],
  sources: LaneInstruction['sources'],
): readonly [string, LaneInstruction] {
  const row: LaneInstruction = {
    name,
    destinations,
    sources,
    evaluate: (...values) => values[0],
    emit: null,
    meaning: 'is',
    unit: 'alu',
    laneOperations: 1,
    evidence: 'isa',
    source: 'a row of this test',
  };
  return [name, row];
}

const rows = new Map([
  lane('mov.b32', [32], [32]),
  lane('mov.b64', [64], [64]),
  lane('mov.u32', [32], [32]),
  lane('mov.u64', [64], [64]),
  lane('not.pred', ['pred'], ['pred']),
  lane('and.pred', ['pred'], ['pred', 'pred']),
  lane('mul.f32', [32], [32, 32]),
  lane('add.f32', [32], [32, 32]),
  lane('sub.f32', [32], [32, 32]),
  lane('xor.b32', [32], [32, 32]),
  lane('fma.rn.f32', [32], [32, 32, 32]),
]);
const tables = {
  lane: (opcode: string, modifiers: readonly string[]) =>
    rows.get([opcode, ...modifiers].join('.')) ?? null,
  warp: [],
  visible: [],
};

function program(body: string, options: { outside?: string; contract?: boolean } = {}): Program {
  const text = `.version 8.0\n.target sm_90\n.address_size 64\n${options.outside ?? ''}
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)\n{\n${body}\n}\n`;
  let next = 4096;
  return createProgram(parsePtx(text), 'k', {
    tables,
    place: () => (next += 4096),
    file: 'k.ptx',
    contract: options.contract === true,
  });
}

const operationsOf = ({ entry }: Program) =>
  entry.blocks.flatMap(({ items }) =>
    items.flatMap((item) => (item.kind === 'lanes' ? item.operations : [])),
  );

test('a block of inline assembly has registers and labels of its own', () => {
  const { entry } = program(`
  .reg .b32 %r<4>; .reg .pred %p<2>;
  mov.b32 %r0, 1;
  { .reg .b32 %r0; again: mov.b32 %r0, 2; @%p1 bra again; }
  { .reg .b32 %r0; again: mov.b32 %r0, 3; @%p1 bra again; }
  mov.b32 %r1, %r0;
  ret;`);
  const slots = entry.blocks.flatMap(({ items }) =>
    items.flatMap((item) =>
      item.kind === 'lanes'
        ? item.operations.map(({ destinations }) => destinations[0]!.offset)
        : [],
    ),
  );
  expect(new Set(slots).size).toBe(4);
  const loops = entry.blocks.flatMap(({ terminator }, block) =>
    terminator.kind === 'branch' ? [[block, terminator.target]] : [],
  );
  expect(loops).toEqual([
    [1, 1],
    [2, 2],
  ]);
});

test('everything that is not supported is said at once, with its lines', () => {
  const body = `.reg .b32 %r<4>;
  frobnicate.b32 %r1, %r2;
  mov.b32 %r1, %undeclared;
  frobnicate.b32 %r1, %r3;
  bra nowhere;
  @%r1 mov.b32 %r1, %r2;
  ret;`;
  const act = () => program(body);
  expect(act).toThrow(RequestError);
  expect(act).toThrow(/lines 8, 10: frobnicate\.b32/);
  expect(act).toThrow(/line 9: %undeclared/);
  expect(act).toThrow(/line 11: bra/);
  expect(act).toThrow(/line 12: @%r1/);
});

test('recursion is refused, and a missing kernel says which there are', () => {
  const outside = `.func f() { call g, (); ret; }\n.func g() { call f, (); ret; }\n`;
  expect(() => program('call f, (); ret;', { outside })).toThrow(/recursion/);
  expect(() =>
    createProgram(
      parsePtx('.version 8.0\n.target sm_90\n.address_size 64\n.entry a() { ret; }'),
      'b',
      {
        tables,
        place: () => 0,
        file: 'k.ptx',
      },
    ),
  ).toThrow(/no kernel "b"; it has a/);
});

test('static shared memory lies before dynamic, aligned; a parameter is where C puts it', () => {
  const result = program(
    `.shared .align 4 .b8 own[12]; .reg .b64 %rd<3>; .reg .b32 %r<4>;
  mov.u64 %rd1, dynamic;
  mov.u64 %rd2, own;
  mov.u32 %r1, first;
  ld.param.u32 %r2, [k_param_1];
  ret;`,
    { outside: '.extern .shared .align 64 .b8 dynamic[];\n.shared .align 8 .b8 first[20];\n' },
  );
  const addresses = operationsOf(result).map(({ sources: [source] }) =>
    'bits' in source ? source.bits : null,
  );
  expect(addresses).toEqual([64n, 20n, 0n, null]);
  expect(result.staticSharedBytes).toBe(64);
  expect(result.parameterRegisters).toMatchObject([{ offset: 8, bytes: 4 }]);
  expect(result.parameters.map(({ offset, bytes }) => [offset, bytes])).toEqual([
    [0, 8],
    [8, 4],
  ]);
});

test('initialisers: numbers, nested lists shorter than their dimension, addresses and bytes of them', () => {
  const { variables } = program(`.reg .b64 %rd<2>; mov.u64 %rd1, table; ret;`, {
    outside: `.global .align 4 .b32 other[4] = {1, 2};
.global .align 8 .u64 table[2] = {other+4, generic(other)};
.global .align 2 .b16 unused[2] = {1, 2};\n`,
  });
  const [other, table] = variables;
  expect(variables.map(({ name }) => name)).toEqual(['other', 'table']);
  expect([...new Uint32Array(other.contents.slice().buffer)]).toEqual([1, 2, 0, 0]);
  expect([...new BigUint64Array(table.contents.slice().buffer)]).toEqual([
    BigInt(other.address + 4),
    BigInt(other.address),
  ]);
});

test('lanes that leave a kernel early are not waited for', () => {
  const { entry } = program(`.reg .pred %p<2>; .reg .b32 %r<2>;
  @%p1 bra done;
  @%p0 ret;
  mov.b32 %r0, 1;
done:
  mov.b32 %r1, 1;
  ret;`);
  expect(entry.blocks.slice(0, 4).map(({ terminator }) => terminator)).toMatchObject([
    { kind: 'branch', target: 3, next: 1 },
    { kind: 'exit', next: 2 },
    { kind: 'goto', target: 3 },
    { kind: 'exit', next: null },
  ]);
  expect(entry.blocks[0].join).toBe(3);
  const atOnce = program(`.reg .pred %p<2>; .reg .b32 %r<2>;
  @%p1 bra done;
  mov.b32 %r0, 1;
done:
  ret;`).entry.blocks;
  expect(atOnce[0].terminator).toMatchObject({
    kind: 'exit',
    next: 1,
    guard: { isNegated: false },
  });
  const others = program(`.reg .pred %p<2>; .reg .b32 %r<2>;
  @%p1 bra more;
  ret;
more:
  mov.b32 %r0, 1;
  ret;`).entry.blocks;
  expect(others[0].terminator).toMatchObject({ kind: 'exit', next: 2, guard: { isNegated: true } });
});

const sums = `.reg .f32 %f<9>;
  mul.f32 %f1, %f2, %f3;
  add.f32 %f4, %f1, %f5;
  mul.f32 %f1, %f2, %f3;
  add.f32 %f4, %f1, %f5;
  mul.f32 %f6, %f2, %f3;
  sub.f32 %f4, %f4, %f6;
  mul.f32 %f7, %f2, %f3;
  mov.b32 %f2, 0f00000000;
  add.f32 %f4, %f4, %f7;
  ret;`;

test('only a product that one sum uses, from what is still there, may be contracted', () => {
  expect(program(sums).contractions).toEqual([{ line: 13, mnemonic: 'sub.f32' }]);
  const names = operationsOf(program(sums, { contract: true })).map(
    ({ instruction }) => instruction.name,
  );
  expect(names).toEqual([
    ...['mul.f32', 'add.f32', 'mul.f32', 'add.f32'],
    ...['xor.b32', 'fma.rn.f32', 'mul.f32', 'mov.b32', 'add.f32'],
  ]);
});
