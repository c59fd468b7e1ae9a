import { describe, expect, it } from 'vitest';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import { testSeed } from '../setup/effort.js';
import { followBody } from './followed-body.js';

const threads = 64;
const [operands, target] = [3, 'sm_100'];

/** Three numbers for each thread, half of them zeros, infinities, NaNs and numbers that others equal. */
function inputs(): Uint8Array {
  const special = [0, -0, 1, -1, Infinity, -Infinity, NaN];
  const next = wordSource(testSeed);
  const drawn = () => {
    const place = next() % (2 * special.length);
    return special[place] ?? (next() % 4001) - 2000;
  };
  return new Uint8Array(Float32Array.from({ length: operands * threads }, drawn).buffer);
}

const load = `mul.wide.u32 %rd3, %r0, ${4 * operands}; add.s64 %rd3, %rd2, %rd3;
  ld.global.b32 %r4, [%rd3]; ld.global.b32 %r5, [%rd3+4]; ld.global.b32 %r6, [%rd3+8];`;

/** The extremum of two numbers by IEEE 754: −0 is less than +0, and a NaN wins only where it is asked for. */
function extremumOf(name: string, a: number, b: number): number {
  if (name.includes('NaN') || !(Number.isNaN(a) || Number.isNaN(b)))
    return name.startsWith('max') ? Math.max(a, b) : Math.min(a, b);
  return Number.isNaN(a) ? b : a;
}

describe('max and min of three operands', () => {
  it.each(['max.f32', 'min.f32', 'max.NaN.f32', 'min.NaN.f32'])(
    '%s: every choice has the bits of the operand that wins among its two',
    async (name) => {
      const body = `${load} ${name} %r7, %r4, %r5, %r6; st.global.b32 [%rd1], %r7;`;
      const formats = { input: 'f32', output: 'f32' };
      const { recorder } = await followBody(body, inputs(), formats, { target });
      const { trace } = recorder;
      const choices = Array.from({ length: trace.count }, (_, value) => value).filter(
        (value) => trace.operationOf(value).origin === 'choice',
      );
      expect(choices).toHaveLength(2 * threads);
      for (const value of choices) {
        const [a, b, winner] = [trace.a[value], trace.b[value], trace.c[value]].map((operand) =>
          trace.numberOf(operand),
        );
        expect([a, b, trace.numberOf(value)]).toEqual([a, b, extremumOf(name, a, b)]);
        expect([a, b, winner]).toEqual([a, b, extremumOf(name, a, b)]);
      }
    },
  );
});
