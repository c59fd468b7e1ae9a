import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RawTensor, writeRawTensors } from '../../src/io/index.js';

/** y[i] = a · x[i] + 1, which an assembler may contract. */
export const smallKernel = `.version 8.7
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 a) {
  .reg .b32 %r<5>; .reg .b64 %rd<9>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [a];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f2, %f1;
  add.f32 %f4, %f3, 0f3F800000;
  st.global.f32 [%rd5], %f4;
  ret;
}
`;
const launch = {
  entry: 'scale',
  grid: [2, 1, 1],
  block: [48, 1, 1],
  parameters: [{ tensor: 'x' }, { tensor: 'y' }, { f32: -1 / 3 }],
  outputs: ['y'],
};
/** What the kernel is given. Products of these by a need more bits than a float32 has. */
export const x = Float32Array.from({ length: 96 }, (_, i) => 3 + i / 97);
const a = Math.fround(-1 / 3);
/** What it gives as written, and as an assembler may contract it. */
export const unfused = x.map((value) => Math.fround(Math.fround(value * a) + 1));
// The product is exact in a double, and the sum is close enough to it for no double rounding to show here.
export const fused = x.map((value) => Math.fround(value * a + 1));

/** A tensor of the kernel. */
export const smallTensor = (name: string, data: Float32Array): RawTensor => ({
  name,
  dtype: 'F32',
  shape: [2, 48],
  bytes: new Uint8Array(data.buffer),
});

/** Writes the kernel, a launch file and tensors into a folder; returns the path of the launch file. */
export async function writeLaunch(
  folder: string,
  tensors: readonly RawTensor[],
  changes: object = {},
): Promise<string> {
  writeFileSync(join(folder, 'kernel.ptx'), smallKernel);
  writeFileSync(join(folder, 'launch.json'), JSON.stringify({ ...launch, ...changes }));
  await writeRawTensors(join(folder, 'tensors.safetensors'), tensors);
  return join(folder, 'launch.json');
}
