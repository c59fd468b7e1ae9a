import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeRawTensors } from '../../src/io/index.js';

/** Sizes of the attention of `writeAttention`: one head, as many queries as keys. */
export const [rows, dim] = [8, 4] as const;

/** What a text of the kernel differs in. */
export interface AttentionChanges {
  /** In place of nothing, before the exponential of the score %f4; the key's value is %f6. */
  readonly score?: string;
  /** In place of the division: the sum is %f7, that with values %f8, O %f9, the element %r3. */
  readonly quotient?: string;
}

/** Attention without a maximum: a thread for each element of O, a block for each row. */
function kernelOf({
  score = '',
  quotient = 'div.rn.f32 %f9, %f8, %f7;',
}: AttentionChanges): string {
  const products = Array.from(
    { length: dim },
    (_, d) =>
      `  ld.global.f32 %f1, [%rd6+${4 * d}]; ld.global.f32 %f2, [%rd8+${4 * d}]; fma.rn.f32 %f3, %f1, %f2, %f3;`,
  );
  return `.version 8.7
.target sm_90a
.address_size 64
.visible .entry attend(.param .u64 q, .param .u64 k, .param .u64 v, .param .u64 o, .param .u64 l) {
  .reg .b32 %r<10>; .reg .b64 %rd<11>; .reg .f32 %f<20>; .reg .pred %p<5>;
  ld.param.u64 %rd1, [q]; ld.param.u64 %rd8, [k]; ld.param.u64 %rd3, [v]; ld.param.u64 %rd4, [o]; ld.param.u64 %rd5, [l];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd6, %r2, ${4 * dim}; add.s64 %rd6, %rd1, %rd6;
  mul.wide.u32 %rd7, %r1, 4; add.s64 %rd7, %rd3, %rd7;
  mad.lo.s32 %r3, %r2, ${dim}, %r1; mul.wide.u32 %rd9, %r3, 4; add.s64 %rd9, %rd4, %rd9;
  mul.wide.u32 %rd10, %r2, 4; add.s64 %rd10, %rd5, %rd10;
  mov.f32 %f7, 0f00000000; mov.f32 %f8, 0f00000000; mov.u32 %r4, 0;
LOOP:
  mov.f32 %f3, 0f00000000;
${products.join('\n')}
  mul.f32 %f4, %f3, 0f3F38AA3B;
  ld.global.f32 %f6, [%rd7];
  ${score}
  ex2.approx.f32 %f5, %f4;
  add.f32 %f7, %f7, %f5;
  fma.rn.f32 %f8, %f5, %f6, %f8;
  add.s64 %rd8, %rd8, ${4 * dim}; add.s64 %rd7, %rd7, ${4 * dim}; add.s32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, ${rows};
  @%p1 bra LOOP;
  ${quotient}
  st.global.f32 [%rd9], %f9;
  lg2.approx.f32 %f10, %f7; mul.f32 %f10, %f10, 0f3F317218;
  setp.eq.u32 %p2, %r1, 0;
  @%p2 st.global.f32 [%rd10], %f10;
  ret;
}
`;
}

/** Numbers of the inputs by their place; default numbers without a pattern. */
export type AttentionInputs = Readonly<Partial<Record<'q' | 'k' | 'v', (i: number) => number>>>;

/** Writes a launch of small attention in fp32 with a contract into a folder of its own; returns the path of its launch file. */
export async function writeAttention(
  scratch: string,
  changes: AttentionChanges = {},
  inputs: AttentionInputs = {},
  contract: object = {},
): Promise<string> {
  const folder = mkdtempSync(join(scratch, 'attention-'));
  const shape = [1, 1, rows, dim];
  const tensor = (name: string, sizes: readonly number[], of: (i: number) => number) => {
    const length = sizes.reduce((product, size) => product * size, 1);
    const data = Float32Array.from({ length }, (_, i) => of(i));
    return { name, dtype: 'F32', shape: sizes, bytes: new Uint8Array(data.buffer) };
  };
  const {
    q = (i) => Math.sin(3 * i),
    k = (i) => Math.cos(5 * i),
    v = (i) => Math.sin(7 * i + 1),
  } = inputs;
  const lseShape = [1, 1, rows];
  await writeRawTensors(join(folder, 'tensors.safetensors'), [
    tensor('q', shape, q),
    tensor('k', shape, k),
    tensor('v', shape, v),
    tensor('out', shape, () => 0),
    tensor('lse', lseShape, () => 0),
  ]);
  writeFileSync(join(folder, 'kernel.ptx'), kernelOf(changes));
  const views = ['q', 'k', 'v', 'out'].map((name) => [name, { tensor: name, shape }] as const);
  const launch = {
    entry: 'attend',
    grid: [rows, 1, 1],
    block: [dim, 1, 1],
    parameters: ['q', 'k', 'v', 'out', 'lse'].map((name) => ({ tensor: name })),
    outputs: ['out', 'lse'],
    contract: {
      kind: 'attention',
      scale: 0.5,
      ...Object.fromEntries(views),
      lse: { tensor: 'lse', shape: lseShape },
      ...contract,
    },
  };
  writeFileSync(join(folder, 'launch.json'), JSON.stringify(launch));
  return join(folder, 'launch.json');
}
