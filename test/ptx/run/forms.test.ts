import { describe, expect, it } from 'vitest';
import { ptxInstructions } from '../../../src/ptx/run/run-launch.js';
import { createProgram } from '../../../src/ptx/program/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';

/** Makes a program of one instruction; throws with what is not supported. */
function lower(instruction: string): void {
  const target = /kind::.*\.m16n8|m16n8.*kind::/.test(instruction)
    ? 'sm_120'
    : /^(wgmma|mma\.sp)/.test(instruction)
      ? 'sm_90'
      : 'sm_100';
  const text = `.version 9.2
.target ${target}a
.address_size 64
.visible .entry k()
{
  .reg .pred p; .reg .b16 h<4>; .reg .b32 r<12>; .reg .b64 d<8>; .reg .f32 f<8>;
  ${instruction}
  ret;
}
`;
  createProgram(parsePtx(text), 'k', {
    tables: ptxInstructions(target),
    place: () => 4096,
    file: 'k.ptx',
    contract: false,
  });
}

const d4 = '{f0,f1,f2,f3}';

/** Forms that ptxas (CUDA 13.4) assembles for the target, as this project's probes found. */
describe('forms that compilers write for Blackwell and Hopper are executed', () => {
  it.each([
    'tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [r9], d1, d2, r0, [r7], [r6], p;',
    'tcgen05.mma.cta_group::2.kind::mxf4.block_scale.block32.collector::a::use [r9], [r8], d2, r0, [r7], [r6], p;',
    'tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [r9], d1, d2, r0, [r7], [r6], p;',
    'tcgen05.mma.cta_group::1.kind::i8 [r9], d1, d2, r0, {r1,r2,r3,r4}, p;',
    'tcgen05.mma.cta_group::2.kind::f16 [r9], d1, d2, r0, {r1,r2,r3,r4,r5,r6,r7,r8}, p;',
    'tcgen05.mma.ws.cta_group::1.kind::f8f6f4.collector::b1::fill [r9], d1, d2, r0, p;',
    'tcgen05.cp.cta_group::1.32x128b.warpx4 [r9], d1;',
    'tcgen05.cp.cta_group::1.warpx4.32x128b [r9], d1;',
    'cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [r9],[d0,{r0,r1,r2,r3,r4}],[r8];',
    'cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [d0,{r0,r1,r2,r3,r4}],[r9];',
    'cvt.rp.satfinite.ue8m0x2.f32 h0, f0, f1;',
    'cvt.rs.relu.satfinite.e4m3x4.f32 r0, {f0,f1,f2,f3}, r1;',
    'cvt.rn.satfinite.e2m3x2.bf16x2 h0, r0;',
    'fma.rn.oob.relu.bf16x2 r0,r1,r2,r3;',
    `mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 ${d4},{r0,r1,r2,r3},{r4,r5,r6,r7},${d4},r8,1;`,
    `mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e2m1.f32.ue8m0 ${d4},{r0,r1,r2,r3},{r4,r5},${d4},{r6},{3,1},{r7},{0,3};`,
    `mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 ${d4},{r0,r1,r2,r3},{r4,r5},${d4},r6,{2,0},r7,{h0,h1};`,
    `mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0 ${d4},{r0,r1,r2,r3},{r4,r5},${d4},r6,{0,1},r7,{0,2};`,
    `mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 ${d4},{r0,r1,r2,r3},{r4,r5},${d4};`,
    'mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f16.e2m3.e5m2.f16 {r8,r9},{r0,r1,r2,r3},{r4,r5},{r8,r9};',
    'redux.sync.max.abs.NaN.f32 f0, f1, 0xffffffff;',
    'ld.global.v8.b32 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];',
    'st.bulk.weak.shared::cta [d0], d1, 0;',
    'add.rn.ftz.f32x2 d0, d1, d2;',
  ])('%s', (instruction) => {
    expect(() => lower(instruction)).not.toThrow();
  });
});

describe('forms that are refused say so in one line', () => {
  it.each([
    ['tcgen05.mma.sp.cta_group::1.kind::f16 [r9], d1, d2, [r7], r0, p;', '.sp'],
    ['tcgen05.mma.ws.cta_group::1.kind::f16 [r9], [r8], d2, r0, p, d3;', 'a mask of zero columns'],
    ['tcgen05.mma.cta_group::1.kind::f16 [r9], d1, d2, r0, p, 3;', 'products that scale D'],
    ['tcgen05.mma.cta_group::1.kind::f16 [r9], d1, d2, r0, {r1,r2}, p;', '4 masks of the lanes'],
    [
      'tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [r9], d1, d2, r0, [r7], [r6], p;',
      'blocks of kind::mxf4nvf4 by default',
    ],
    [
      'tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block16 [r9], d1, d2, r0, [r7], [r6], p;',
      'blocks of kind::mxf4 by .block16',
    ],
    ['tcgen05.mma.cta_group::1.kind::mxf4 [r9], d1, d2, r0, p;', 'kind mxf4'],
    ['tcgen05.shift.cta_group::1.down [r9];', 'in no table'],
    ['tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [r9], d1;', 'a change of format'],
    ['multimem.ld_reduce.global.add.f32 f0,[d0];', 'in no table'],
    [
      'cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [r9],[d0,{r0,r1,r2}],[r8],{h0};',
      'copies with .im2col',
    ],
    ['cvt.rs.satfinite.e2m1x4.f32 h0, {f0,f1,f2,f3}, r1;', 'in no table'],
    [
      `mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32 ${d4},{r0,r1,r2,r3},{r4,r5,r6,r7},${d4},r8,0;`,
      'which has no instruction for them',
    ],
  ])('%s', (instruction, why) => {
    expect(() => lower(instruction)).toThrow(/^k\.ptx: not supported: line \d+: [^\n]+$/);
    expect(() => lower(instruction)).toThrow(why);
  });
});
