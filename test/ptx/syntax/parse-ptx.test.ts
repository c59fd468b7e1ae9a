import { describe, expect, it } from 'vitest';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { instructionOf, moduleOf, refusalOf, statementsOf, withoutPlaces } from './ptx-text.js';

/** The operands of an instruction, without their places. */
const operandsOf = (text: string) => withoutPlaces(instructionOf(text).operands);
const name = (text: string) => ({ kind: 'name', name: text });
const integer = (value: bigint) => ({ kind: 'integer', value });

describe('operands', () => {
  it.each([
    ['bar.sync 32;', integer(32n)],
    ['bar.sync 0x20;', integer(32n)],
    ['bar.sync 040;', integer(32n)],
    ['bar.sync 0b100000U;', integer(32n)],
    ['bar.sync -1;', integer(-1n)],
    ['bar.sync 0xFFFFFFFFFFFFFFFF;', integer(2n ** 64n - 1n)],
    ['bar.sync 0f3F800000;', { kind: 'float', format: 'f32', bits: 0x3f800000n }],
    ['bar.sync -0f7FC00001;', { kind: 'float', format: 'f32', bits: 0xffc00001n }],
    ['bar.sync 0d7FF0000000000001;', { kind: 'float', format: 'f64', bits: 0x7ff0000000000001n }],
    ['bar.sync 1.5;', { kind: 'float', format: 'f64', bits: 0x3ff8000000000000n }],
    ['bar.sync 15e-1;', { kind: 'float', format: 'f64', bits: 0x3ff8000000000000n }],
    ['bar.sync 0.5;', { kind: 'float', format: 'f64', bits: 0x3fe0000000000000n }],
    ['bar.sync %tid.x;', name('%tid.x')],
    ['bar.sync $L__BB0_1;', name('$L__BB0_1')],
    ['bar.sync "odd name";', name('odd name')],
    ['bar.sync _;', { kind: 'sink' }],
    ['bar.sync !%p1;', { kind: 'negated', operand: name('%p1') }],
    ['bar.sync %p1|%p2;', { kind: 'pair', first: name('%p1'), second: name('%p2') }],
    ['bar.sync _|%p2;', { kind: 'pair', first: { kind: 'sink' }, second: name('%p2') }],
    ['bar.sync smem+4;', { kind: 'sum', name: 'smem', offset: 4n }],
    [
      'bar.sync {%r1, _, 3};',
      { kind: 'vector', elements: [name('%r1'), { kind: 'sink' }, integer(3n)] },
    ],
    ['bar.sync [%r1];', { kind: 'address', base: '%r1', offset: 0n, coordinates: [] }],
    ['bar.sync [%r1 + -8];', { kind: 'address', base: '%r1', offset: -8n, coordinates: [] }],
    ['bar.sync [a+1<<4];', null],
    ['bar.sync [a+2*(8-4)-1];', { kind: 'address', base: 'a', offset: 7n, coordinates: [] }],
    ['bar.sync [1 << 4];', { kind: 'address', base: null, offset: 16n, coordinates: [] }],
    [
      'bar.sync [%rd1, {%r1, 0}, {%rs1}];',
      {
        kind: 'address',
        base: '%rd1',
        offset: 0n,
        coordinates: [[name('%r1'), integer(0n)], [name('%rs1')]],
      },
    ],
  ])('%s', (text, expected) => {
    if (expected === null) expect(() => operandsOf(text)).toThrow('expected "+", "-", "," or "]"');
    else expect(operandsOf(text)).toEqual([expected]);
  });

  it('may be decimals that begin with their point', () => {
    expect(operandsOf('mov.f64 a, .5e1;')).toEqual([
      name('a'),
      { kind: 'float', format: 'f64', bits: 0x4014000000000000n },
    ]);
  });

  it('are lists in calls, and only there', () => {
    expect(operandsOf('call.uni (r0), f, (a, 1), prototype_0;')).toEqual([
      { kind: 'list', elements: [name('r0')] },
      name('f'),
      { kind: 'list', elements: [name('a'), integer(1n)] },
      name('prototype_0'),
    ]);
    expect(operandsOf('call f;')).toEqual([name('f')]);
    expect(operandsOf('mov.u32 %r1, (1 + 2);')).toEqual([name('%r1'), integer(3n)]);
  });
});

describe('constant expressions', () => {
  /** PTX ISA, "Constant Expressions": precedences of C, and rules of types of its own. */
  it.each([
    ['1 + 2 * 3', 7n],
    ['(1 + 2) * 3', 9n],
    ['10 - 4 - 3', 3n],
    ['1 << 2 + 3', 32n],
    ['7 & 3 == 3', 1n],
    ['1 | 2 ^ 3 & 1', 3n],
    ['-7 / 2', -3n],
    ['-1 % 10', 5n],
    ['-1 > 1U', 1n],
    ['-1 > 1', 0n],
    ['-16 >> 2', -4n],
    ['-16U >> 60', 15n],
    ['0xfabc123400000000 >> 60', 15n],
    ['1 << 64', 0n],
    ['-1 >> 1000', -1n],
    ['~0', 2n ** 64n - 1n],
    ['(.s64)~0', -1n],
    ['(.u64)-1', 2n ** 64n - 1n],
    ['!5 + 1', 1n],
    ['1 && 0 || 1', 1n],
    ['1 ? 2 : 3', 2n],
    ['0 ? 2 : 0 ? 3 : 4', 4n],
    ['1 ? -1 : 0U', 2n ** 64n - 1n],
    ['WARP_SZ / 2', 16n],
    ['0x7fffffffffffffff + 1', -(2n ** 63n)],
    ['1.0 < 2.0', 1n],
  ])('%s', (text, value) => {
    expect(operandsOf(`bar.sync ${text.startsWith('!') ? `(${text})` : text};`)).toEqual([
      integer(value),
    ]);
  });

  it('of doubles are doubles', () => {
    expect(operandsOf('bar.sync -(1.0 + 0.5) * 2.0;')).toEqual([
      { kind: 'float', format: 'f64', bits: 0xc008000000000000n },
    ]);
  });

  it.each([
    '1 / 0',
    '1 % 0',
    '1 + 1.0',
    '0f3F800000 + 0f3F800000',
    '~1.0',
    '(.u64)1.0',
    '1.0 % 2.0',
  ])('%s has no value', (text) => {
    expect(() => operandsOf(`bar.sync ${text};`)).toThrow(/^kernel\.ptx, line 5, column \d+: /);
  });
});

describe('instructions', () => {
  it('keep opcode, modifiers, guard and place', () => {
    const text = '  @!%p3 tcgen05.mma.cta_group::1.kind::f16 [%r1 + 0], %rd1, %rd2, %r2, %p1;';
    expect(instructionOf(text)).toMatchObject({
      opcode: 'tcgen05',
      modifiers: ['mma', 'cta_group::1', 'kind::f16'],
      guard: { predicate: '%p3', isNegated: true },
      place: { line: 5, column: 3 },
    });
    expect(
      instructionOf('wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 %r1;').modifiers,
    ).toEqual(['mma_async', 'sync', 'aligned', 'm64n8k16', 'f32', 'bf16', 'bf16']);
    expect(instructionOf('tcgen05.ld.sync.aligned.16x256b.x1.b32 {a}, [b];').modifiers[3]).toBe(
      '16x256b',
    );
  });

  it('stand over several lines, between comments', () => {
    const statements = statementsOf(
      'ret /* ; \n } */ ; // }\nL1: add\n.u32 a,\nb, // c\n1; ; exit;',
    );
    expect(statements.map(({ kind, place }) => [kind, place.line])).toEqual([
      ['instruction', 5],
      ['label', 7],
      ['instruction', 7],
      ['instruction', 10],
    ]);
  });
});

describe('statements', () => {
  it('open scopes of their own', () => {
    const [block] = statementsOf('{ .reg .pred p; wait: @!p bra.uni wait; { exit; } }');
    expect(block).toMatchObject({
      kind: 'block',
      statements: [
        { kind: 'variable', name: 'p', type: 'pred' },
        { kind: 'label', name: 'wait' },
        { kind: 'instruction', opcode: 'bra' },
        { kind: 'block', statements: [{ opcode: 'exit' }] },
      ],
    });
  });

  it('name lines of the source, targets of branches and of calls', () => {
    const statements = statementsOf(`
      .loc 1 20 5
      .loc 2 7 3, function_name $L__info_string0 + 12, inlined_at 1 20 5
      $L_brx_0: .branchtargets $L1, $L2;
      t: .calltargets f, g;
      p: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 x[16]) .noreturn;
      .pragma "nounroll", "other";
      q: .callprototype ()_ ();`);
    expect(withoutPlaces(statements)).toMatchObject([
      { kind: 'location', file: 1, line: 20, column: 5, inlinedAt: null },
      {
        kind: 'location',
        file: 2,
        line: 7,
        column: 3,
        inlinedAt: { file: 1, line: 20, column: 5 },
      },
      { kind: 'branch-targets', name: '$L_brx_0', labels: ['$L1', '$L2'] },
      { kind: 'call-targets', name: 't', functions: ['f', 'g'] },
      {
        kind: 'call-prototype',
        name: 'p',
        returns: [{ name: '_', type: 'b32' }],
        parameters: [
          { name: '_', type: 'b64' },
          { name: 'x', alignment: 8, dimensions: [16] },
        ],
      },
      { kind: 'call-prototype', name: 'q', returns: [], parameters: [] },
    ]);
  });
});

describe('declarations', () => {
  it('name registers, several at once, with vectors and counts', () => {
    expect(withoutPlaces(statementsOf('.reg .b32 %r<10>, a; .reg .v4 .f32 v;'))).toMatchObject([
      { name: '%r', count: 10, type: 'b32', space: 'reg', vector: 1 },
      { name: 'a', count: null, type: 'b32' },
      { name: 'v', vector: 4, type: 'f32' },
    ]);
  });

  it('give arrays their dimensions, and variables what they begin with', () => {
    const { variables } = moduleOf(`
      .extern .shared .align 16 .b8 smem[];
      .global .align 1 .b8 text[2 * 2] = {95, -1, 256, 0x61};`);
    expect(withoutPlaces(variables)).toMatchObject([
      { name: 'smem', linkage: 'extern', alignment: 16, dimensions: [null], initialiser: null },
      {
        name: 'text',
        dimensions: [4],
        initialiser: {
          kind: 'list',
          elements: [95n, 255n, 0n, 97n].map((bits) => ({ kind: 'bits', bits })),
        },
      },
    ]);
  });

  it.each([
    ['.f32 x = 1.5', { kind: 'bits', bits: 0x3fc00000n }],
    ['.f32 x = 0d3FF0000000000001', { kind: 'bits', bits: 0x3f800000n }],
    ['.f64 x = 0f3FC00000', { kind: 'bits', bits: 0x3ff8000000000000n }],
    ['.f64 x = -0.0', { kind: 'bits', bits: 2n ** 63n }],
    ['.b32 x = 0f7FC00001', { kind: 'bits', bits: 0x7fc00001n }],
    ['.s16 x = -2', { kind: 'bits', bits: 0xfffen }],
    ['.u64 x = y+8', { kind: 'address', name: 'y', offset: 8n, isGeneric: false, mask: null }],
    [
      '.u64 x = generic(y)+8',
      { kind: 'address', name: 'y', offset: 8n, isGeneric: true, mask: null },
    ],
    [
      '.u8 x = 0xff00(generic(y+8))',
      { kind: 'address', name: 'y', offset: 8n, isGeneric: true, mask: 0xff00n },
    ],
  ])('%s', (text, initialiser) => {
    expect(moduleOf(`.global ${text};`).variables[0]?.initialiser).toEqual(initialiser);
  });

  it('nest lists as arrays nest', () => {
    const { initialiser } = moduleOf('.const .u32 x[2][2] = {{1, 2}, {3}};').variables[0] ?? {};
    const bits = (value: bigint) => ({ kind: 'bits', bits: value });
    expect(initialiser).toEqual({
      kind: 'list',
      elements: [
        { kind: 'list', elements: [bits(1n), bits(2n)] },
        { kind: 'list', elements: [bits(3n)] },
      ],
    });
  });
});

describe('modules', () => {
  it('have kernels and functions with their parameters and directives', () => {
    const { functions, aliases, files, targetOptions } = moduleOf(`
      .target sm_90a, debug
      .file 1 "/a/kernel.py", 1700000000, 12
      .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
      .visible .func f (.reg .f32 x) .noreturn { ret; }
      .alias g, f;
      .func .attribute(.unified(1, 2)) h ();
      .weak .entry k(
        .param .u64 .ptr .global .align 16 p,
        .param .align 64 .b8 map[128],
        .param .u64 .ptr q
      ) .maxntid 128, 1, 1 .minnctapersm 2 .explicitcluster .reqnctapercluster 2, 1, 1
      .pragma "x";
      { }
      .section .debug_info { .b8 1, -1 L: .b32 .debug_abbrev, L+4 { } }
      .section .debug_macinfo { }`);
    expect(targetOptions).toEqual(['debug']);
    expect([...aliases]).toEqual([['g', 'f']]);
    expect([...files]).toEqual([[1, '/a/kernel.py']]);
    expect(withoutPlaces(functions)).toMatchObject([
      { kind: 'func', name: 'vprintf', linkage: 'extern', body: null, returns: [{ name: 'r' }] },
      { kind: 'func', name: 'f', parameters: [{ space: 'reg', name: 'x' }] },
      { kind: 'func', name: 'h', body: null },
      {
        kind: 'entry',
        name: 'k',
        linkage: 'weak',
        body: [],
        parameters: [
          { name: 'p', type: 'u64', pointer: { space: 'global', alignment: 16 } },
          { name: 'map', type: 'b8', alignment: 64, dimensions: [128], pointer: null },
          { name: 'q', pointer: { space: null, alignment: null } },
        ],
      },
    ]);
    expect([...(functions[3]?.directives ?? [])]).toEqual([
      ['maxntid', [128, 1, 1]],
      ['minnctapersm', [2]],
      ['explicitcluster', []],
      ['reqnctapercluster', [2, 1, 1]],
    ]);
  });

  it('have addresses of 32 bits where nothing is said', () => {
    expect(moduleOf('').addressSize).toBe(64);
    expect(parsePtx('.version 8.7\n.target sm_90').addressSize).toBe(32);
  });
});

describe('a text that is not PTX', () => {
  const head = '.version 8.7\n.target sm_90a\n';
  it.each([
    [
      '',
      'kernel.ptx, line 1, column 1: expected .version at the beginning, found the end of the text',
    ],
    [
      '.target sm_90',
      'kernel.ptx, line 1, column 1: expected .version at the beginning, found ".target"; the line reads: .target sm_90',
    ],
    [
      '.version 8',
      'kernel.ptx, line 1, column 10: expected a version such as 8.7, found "8"; the line reads: .version 8',
    ],
    [
      `${head}.entry k() { mov.u32 %r1 %r2; }`,
      'kernel.ptx, line 3, column 26: expected "," or ";" behind an operand, found "%r2"; the line reads: .entry k() { mov.u32 %r1 %r2; }',
    ],
    [
      `${head}.entry k() {\n ret;\n`,
      'kernel.ptx, line 5, column 1: expected "}" for the "{" of line 3, found the end of the text',
    ],
    [
      `${head}.entry k() { add.u32 a, 0x; }`,
      'kernel.ptx, line 3, column 25: expected a number of at most 64 bits',
    ],
    [
      `${head}.entry k() { add.u32 a, 99999999999999999999; }`,
      'kernel.ptx, line 3, column 25: expected a number of at most 64 bits',
    ],
    [`${head}/* a`, 'kernel.ptx, line 3, column 1: expected "*/" somewhere behind this "/*"'],
    [`${head}.file 1 "a`, `kernel.ptx, line 3, column 9: expected '"' before the end of the line`],
    [`${head}é`, 'kernel.ptx, line 3, column 1: expected a token of PTX, found the character "é"'],
    [
      `${head}\u0007`,
      'kernel.ptx, line 3, column 1: expected a token of PTX, found the character "\\u{7}"',
    ],
    [
      `${head}.reg .b32 %r<4294967296>;`,
      'kernel.ptx, line 3, column 14: expected a number of registers up to 16777216',
    ],
    [
      `${head}.global .b8 x[-1];`,
      'kernel.ptx, line 3, column 15: expected a number of elements from 0 to 281474976710656',
    ],
    [
      `${head}.global .align 3 .b8 x;`,
      'kernel.ptx, line 3, column 16: an alignment is a power of two, and 3 is none',
    ],
    [
      `${head}.global .f32 x = 1;`,
      'kernel.ptx, line 3, column 18: a variable of type .f32 begins with no such number as an integer',
    ],
    [
      `${head}.global .b12 x;`,
      'kernel.ptx, line 3, column 9: expected a type (.b32, .f32, .pred, …), found ".b12"',
    ],
    [
      `${head}.entry k() .reqntit 1 {}`,
      'kernel.ptx, line 3, column 12: expected a directive of functions',
    ],
    [
      `${head}.section .debug_str {`,
      'kernel.ptx, line 3, column 22: expected "}" for the section of line 3',
    ],
    [
      `${head}.entry k() { .loc 1 2 }`,
      'kernel.ptx, line 3, column 23: expected a column, found "}"',
    ],
  ])('%j', (text, message) => {
    expect(refusalOf(text).slice(0, message.length)).toBe(message);
  });

  it('is shown around the place where its line is long', () => {
    const message = refusalOf(`${head}.entry k() { mov.u32 ${'a, '.repeat(1000)}? b; }`);
    expect(message).toContain('found "?"; the line reads: …');
    expect(message.length).toBeLessThan(250);
  });

  it.each([
    ['blocks', '{'],
    ['parentheses', 'mov.u32 a, ' + '('.repeat(10)],
    ['signs', 'mov.u32 a, ' + '-'],
    ['vectors', 'mov.u32 ' + '{'],
  ])('may nest %s without end, and is refused', (_, opening) => {
    const last = opening.at(-1) ?? '';
    expect(refusalOf(`${head}.entry k() { ${opening}${last.repeat(1e5)}`)).toContain(
      'what is nested here is deeper than the 100 levels that are read',
    );
  });

  it('may write long numbers, and is read in time', () => {
    expect(refusalOf(`${head}.entry k() { add.u32 a, ${'9'.repeat(2e6)}; }`)).toContain('64 bits');
  });
});
