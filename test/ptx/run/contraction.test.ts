import { expect, it } from 'vitest';
import { runLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { launchBody } from './run-body.js';

const { fround } = Math;
const threads = 64;
/** Each in [½, 1), so that t² and 1 − t² are exact in fp64. */
const values = Float32Array.from(
  { length: 2 * threads },
  (_, i) => 0.5 + (i * 65_537 + 3) / 2 ** 24,
);

/** 1 − t² of both halves of a pair, of which even threads store the lower and odd ones the upper. */
const slope = `
  mad.wide.u32 %rd3, %r0, 8, %rd2;
  ld.global.b64 %rd4, [%rd3];
  mov.b32 %r3, 0f3F800000;
  mov.b64 %rd5, {%r3, %r3};
  mul.f32x2 %rd6, %rd4, %rd4;
  sub.f32x2 %rd7, %rd5, %rd6;
  mov.b64 {%r4, %r5}, %rd7;
  and.b32 %r6, %r0, 1;
  setp.eq.u32 %p1, %r6, 0;
  selp.b32 %r7, %r4, %r5, %p1;
  st.global.u32 [%rd1], %r7;`;

it.each([
  ['two operations as it is written', false, (t: number) => fround(1 - fround(t * t))],
  ['one where it is contracted', true, (t: number) => fround(1 - t * t)],
])('a packed product and the difference from it are %s', async (_, contract, expected) => {
  const input = new Uint8Array(4096);
  input.set(new Uint8Array(values.buffer));
  const { ptx, launch } = await launchBody(slope, { target: 'sm_100a', input });
  const run = runLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx', contract });
  expect(run.contractions.map(({ mnemonic }) => mnemonic)).toEqual(['sub.f32x2']);
  const stored = new Float32Array(run.tensors.get('out')!.slice(0, 4 * threads).buffer);
  expect(stored).toEqual(
    Float32Array.from({ length: threads }, (_, i) => expected(values[2 * i + (i % 2)])),
  );
});
