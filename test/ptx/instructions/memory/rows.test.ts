import { describe, expect, it } from 'vitest';
import {
  createByteStore,
  createConstantMemory,
  createGlobalMemory,
} from '../../../../src/machine/index.js';
import { createProgram } from '../../../../src/ptx/program/index.js';
import { ptxInstructions } from '../../../../src/ptx/run/run-launch.js';
import { runKernel } from '../../../../src/ptx/run/run-kernel.js';
import { parsePtx } from '../../../../src/ptx/syntax/index.js';
import { createTensorMaps } from '../../../../src/ptx/run/tensor-maps.js';

/** Runs the body of a kernel whose registers `%in` and `%out` point to 1 KiB each, for each lane 32 bytes further. */
function run(body: string, input: Uint8Array = new Uint8Array(1024), shared = '') {
  const module = parsePtx(
    `.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b128 %q<3>; .reg .f32 %f<9>;
  .reg .pred %p<9>; .reg .b64 %in, %out; .reg .b32 %tid;
  ${shared}
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mov.u32 %tid, %tid.x;
  mul.wide.u32 %d0, %tid, 32;
  add.u64 %in, %in, %d0;
  add.u64 %out, %out, %d0;
  ${body.replaceAll('%tid.x', '%tid')}
  ret;
}`.replace('mov.u32 %tid, %tid;', 'mov.u32 %tid, %tid.x;'),
  );
  const memory = {
    global: createGlobalMemory(),
    constant: createConstantMemory(),
    parameters: createByteStore(16),
    localBytes: 64,
  };
  const contents = new Uint8Array(1024);
  contents.set(input);
  const bases = [contents, new Uint8Array(1024)].map((bytes, i) =>
    memory.global.allocate({ name: i === 0 ? 'in' : 'out', contents: bytes }),
  );
  bases.forEach(({ base }, i) =>
    new DataView(memory.parameters.bytes.buffer).setBigUint64(8 * i, BigInt(base), true),
  );
  const program = createProgram(module, 'k', {
    tables: ptxInstructions('sm_90'),
    place: () => 0,
    file: 'k.ptx',
  });
  const one = [1, 1, 1] as const;
  const launch = { program, grid: one, block: [32, 1, 1] as const, cluster: one };
  const result = runKernel(
    {
      ...launch,
      dynamicSharedBytes: 0,
      memory,
      tensorMaps: createTensorMaps({
        parameters: new Map(),
        find: () => undefined,
        before: () => null,
      }),
    },
    { mostSteps: 1000 },
  );
  expect(result.findings.map(({ message }) => message)).toEqual([]);
  return bases[1].store.bytes;
}

/** The bytes of every lane's part of the output from its first byte on, lane 0 first. */
const part = (bytes: Uint8Array, lane: number, count: number) =>
  Buffer.from(bytes.subarray(32 * lane, 32 * lane + count)).toString('hex');
const numbered = Uint8Array.from({ length: 1024 }, (_, i) => i);

describe('loads', () => {
  const byte = Uint8Array.of(0x80, 0x7f, 0xff, 0x81);
  it.each([
    ['ld.global.s8 %r1, [%in];\nst.global.u32 [%out], %r1;', '80ffffff'],
    ['ld.global.u8 %r1, [%in];\nst.global.u32 [%out], %r1;', '80000000'],
    ['ld.global.b8 %h1, [%in+1];\nst.global.u16 [%out], %h1;', '7f00'],
    ['ld.global.s8 %h1, [%in];\nst.global.u16 [%out], %h1;', '80ff'],
    ['ld.global.s16 %r1, [%in+2];\nst.global.u32 [%out], %r1;', 'ff81ffff'],
    ['ld.global.s32 %d1, [%in];\nst.global.u64 [%out], %d1;', '807fff81ffffffff'],
    ['ld.global.u32 %d1, [%in];\nst.global.u64 [%out], %d1;', '807fff8100000000'],
    [
      'ld.global.v4.s8 {%r1, _, %r2, %r3}, [%in];\nst.global.v2.u32 [%out], {%r1, %r3};',
      '80ffffff81ffffff',
    ],
  ])('extend by type and register: %s', (body, expected) => {
    expect(part(run(body, byte), 0, expected.length / 2)).toBe(expected);
  });

  it.each([
    ['v2.b16', '{%h1, %h2}', 4],
    ['v4.b16', '{%h1, %h2, %h3, %h4}', 8],
    ['v4.f32', '{%f1, %f2, %f3, %f4}', 16],
    ['v2.b64', '{%d1, %d2}', 16],
    ['v8.b32', '{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}', 32],
    ['v4.b64', '{%d1, %d2, %d3, %d4}', 32],
    ['b128', '%q1', 16],
    ['f16', '%h1', 2],
  ])('and stores move %s', (type, registers, bytes) => {
    const out = run(
      `ld.global.${type} ${registers}, [%in];\nst.global.${type} [%out], ${registers};`,
      numbered,
    );
    for (const lane of [0, 1, 31]) expect(part(out, lane, bytes)).toBe(part(numbered, lane, bytes));
  });

  it.each([
    ['st.global.f32 [%out], 0f3FC00000;', '0000c03f'],
    ['st.global.f32 [%out], 1.5;', '0000c03f'],
    ['st.global.f64 [%out], 1.5;', '000000000000f83f'],
    ['st.global.s32 [%out], -2;', 'feffffff'],
    ['st.global.u64 [%out], -2;', 'feffffffffffffff'],
    ['mov.b32 %r1, 0x12345678;\nst.global.b8 [%out+1], %r1;', '0078'],
    ['mov.b64 %d1, 0x1122334455667788;\nst.global.b16 [%out], %d1;', '8877'],
  ])('stores of constants and of the low part of registers: %s', (body, expected) => {
    expect(part(run(body), 5, expected.length / 2)).toBe(expected);
  });

  it('and stores with orders, scopes, cache operators and hints', () => {
    const out = run(
      `ld.global.nc.L1::no_allocate.L2::128B.b32 %r1, [%in];
       ld.acquire.gpu.global.u32 %r2, [%in+4];
       ld.volatile.global.u32 %r3, [%in+8];
       ld.relaxed.sys.global.cg.b32 %r4, [%in+12];
       ldu.global.u32 %r5, [%in+16];
       prefetch.global.L2 [%in];
       st.release.gpu.global.b32 [%out], %r1;
       st.relaxed.cta.b32 [%out+4], %r2;
       st.volatile.global.b32 [%out+8], %r3;
       st.global.wt.L1::evict_last.b32 [%out+12], %r4;
       st.b32 [%out+16], %r5;
       fence.acq_rel.gpu; fence.sc.cta; membar.gl; fence.proxy.async.global;`,
      numbered,
    );
    expect(part(out, 7, 20)).toBe(part(numbered, 7, 20));
  });

  it('only by lanes whose guard holds', () => {
    const out = run(
      `setp.lt.u32 %p1, %tid, 3;
       @%p1 ld.global.u32 %r1, [%in];
       @%p1 st.global.u32 [%out], %r1;`,
      numbered,
    );
    expect([0, 2, 3].map((lane) => part(out, lane, 4))).toEqual([
      part(numbered, 0, 4),
      part(numbered, 2, 4),
      '00000000',
    ]);
  });
});

describe('addresses', () => {
  it('go to the generic space and back, and say which space they are in', () => {
    const out = run(
      `mov.u64 %d1, buffer;
       cvta.shared.u64 %d2, %d1;
       mul.wide.u32 %d3, %tid, 4;
       add.u64 %d4, %d2, %d3;
       st.u32 [%d4], %tid;
       cvta.to.shared.u64 %d5, %d4;
       cvt.u32.u64 %r1, %d5;
       ld.shared.u32 %r2, [%r1];
       isspacep.shared %p1, %d4;
       isspacep.global %p2, %d4;
       isspacep.global %p3, %out;
       selp.u32 %r3, 1, 0, %p1;
       selp.u32 %r4, 1, 0, %p2;
       selp.u32 %r5, 1, 0, %p3;
       st.global.v4.u32 [%out], {%r2, %r3, %r4, %r5};`,
      undefined,
      '.shared .align 4 .b8 buffer[128];',
    );
    expect(part(out, 9, 16)).toBe('09000000010000000000000001000000');
  });
});

describe('atomic operations', () => {
  it.each([
    ['atom.global.add.u32 %r1, [%in], 5;', '00010203', '05010203'],
    ['atom.add.release.gpu.global.u32 %r1, [%in], 5;', '00010203', '05010203'],
    ['atom.global.gpu.acq_rel.exch.b32 %r1, [%in], -1;', '00010203', 'ffffffff'],
    ['atom.global.acq_rel.gpu.cas.b32 %r1, [%in], 0x03020100, 7;', '00010203', '07000000'],
    ['atom.global.cas.b32 %r1, [%in], 1, 7;', '00010203', '00010203'],
    ['red.global.max.s32 [%in], 0x7fffffff;\nmov.b32 %r1, 0;', '00000000', 'ffffff7f'],
    ['red.relaxed.gpu.global.add.noftz.f16x2 [%in], 0;\nmov.b32 %r1, 0;', '00000000', '00010203'],
    ['atom.global.inc.u32 %r1, [%in], 2;', '00010203', '00000000'],
  ])('%s', (body, result, after) => {
    const out = run(
      `setp.eq.u32 %p1, %tid, 0;
       @!%p1 ret;
       ${body}
       ld.global.u32 %r2, [%in];
       st.global.v2.u32 [%out], {%r1, %r2};`,
      numbered,
    );
    expect([part(out, 0, 4), part(out, 0, 8).slice(8)]).toEqual([result, after]);
  });

  it('on vectors', () => {
    const out = run(
      `mov.f32 %f1, 0f3F800000;
       red.global.v2.f32.add [%out], {%f1, %f1};
       red.global.add.v2.f32 [%out], {%f1, %f1};`,
    );
    expect(part(out, 3, 8)).toBe('0000004000000040');
  });
});

describe('cp.async', () => {
  const copy = (form: string, rest: string) =>
    `mov.u32 %r1, buffer;
     shl.b32 %r2, %tid, 4;
     add.u32 %r1, %r1, %r2;
     setp.lt.u32 %p1, %tid, 2;
     selp.b32 %r3, 16, 6, %p1;
     cp.async.${form} [%r1], [%in], ${rest};
     cp.async.commit_group;
     cp.async.wait_group 0;
     ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r1];
     st.global.v4.b32 [%out], {%r4, %r5, %r6, %r7};`;
  const buffer = '.shared .align 16 .b8 buffer[512];';

  it.each([
    ['cg.shared.global', '16', 16],
    ['ca.shared::cta.global.L2::128B', '16, 16', 16],
    ['cg.shared.global', '16, %r3', 6],
    ['cg.shared.global', '16, 0', 0],
    ['ca.shared.global', '16, %p1', 16],
    ['ca.shared.global', '16, !%p1', 0],
  ])('%s with %s copies %i bytes of lane 5', (form, rest, bytes) => {
    const out = run(copy(form, rest), numbered, buffer);
    expect(part(out, 5, 16)).toBe(part(numbered, 5, bytes).padEnd(32, '0'));
  });
});

describe('matrices', () => {
  it('are loaded, transposed and stored', () => {
    const out = run(
      `mov.u32 %r1, buffer;
       shl.b32 %r2, %tid, 4;
       add.u32 %r1, %r1, %r2;
       ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%in];
       st.shared.v4.b32 [%r1], {%r4, %r5, %r6, %r7};
       bar.warp.sync -1;
       ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r1];
       bar.warp.sync -1;
       stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r1], {%r8, %r9, %r10, %r11};
       bar.warp.sync -1;
       ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {%r12, %r13, %r14, %r15}, [%r1];
       st.global.v4.b32 [%out], {%r8, %r9, %r12, %r13};`,
      numbered,
      '.shared .align 16 .b8 buffer[512];',
    );
    // Row r of matrix m is what lane 8m + r loaded; lane 4r + c has its elements 2c and 2c + 1.
    const of = (lane: number, matrix: number) =>
      Buffer.from(numbered.subarray(32 * (8 * matrix + (lane >> 2)) + 4 * (lane & 3)))
        .toString('hex')
        .slice(0, 8);
    for (const lane of [0, 6, 31])
      expect(part(out, lane, 16)).toBe(of(lane, 0) + of(lane, 1) + of(lane, 0) + of(lane, 1));
  });
});

describe('what is refused', () => {
  it.each([
    ['ld.global.b32.async %r1, [%in];', /\.async of a load/],
    ['atom.global.min.f32 %f1, [%in], %f1;', /an atomic min of f32, which PTX has not/],
    ['cp.async.cg.shared.global [%r1], [%in], 8;', /copies of 8 bytes, which PTX has not/],
    [
      'ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];',
      /matrices other than m8n8 of b16/,
    ],
  ])('%s', (body, message) => {
    expect(() => run(body)).toThrow(message);
  });
});
