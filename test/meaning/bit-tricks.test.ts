import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decidedValue, lostValue, noValue, type Trace } from '../../src/meaning/trace/index.js';
import { wordSource } from '../hardware/tensor-core/random-patterns.js';
import { scaled } from '../setup/effort.js';
import { followBody } from './followed-body.js';

const threads = 64;
const single = { input: 'f32', output: 'f32' };
const double = { input: 'f64', output: 'f64' };
/** With so many values before, tags have numbers of 32 bits. */
const many = { valuesBefore: 2_200_000 };

/** The word of a thread in %r4, its address of 64-bit elements in %rd4 and %rd5. */
const load = 'mul.wide.u32 %rd3, %r0, 4; add.s64 %rd3, %rd2, %rd3; ld.global.b32 %r4, [%rd3];';
const loadWide =
  'mul.wide.u32 %rd3, %r0, 8; add.s64 %rd4, %rd2, %rd3; add.s64 %rd5, %rd0, %rd3; ld.global.b64 %rd6, [%rd4];';
const store = 'st.global.b32 [%rd1], %r6;';

/** Numbers in fp32, each with a sign and an exponent of its own and significands from `next`. */
function numbers(next: () => number): Uint8Array {
  const words = Uint32Array.from(
    { length: threads },
    (_, thread) => (((thread & 1) << 31) | ((96 + thread) << 23) | (next() & 0x7fffff)) >>> 0,
  );
  return new Uint8Array(words.buffer);
}

function doubles(next: () => number): Uint8Array {
  const words = Uint32Array.from({ length: 2 * threads }, (_, i) =>
    i % 2 === 0 ? next() : (((i & 2) << 30) | ((1000 + i) << 20) | (next() & 0xfffff)) >>> 0,
  );
  return new Uint8Array(words.buffer);
}

/** Whether bits have been cut off on the way to a value, each of whose operations has one operand. */
function isCut(trace: Trace, value: number): boolean {
  const { origin } = trace.operationOf(value);
  if (origin === 'input' || origin === 'constant') return false;
  return origin === 'same' || isCut(trace, trace.a[value]);
}

describe('a trick on bits', () => {
  const opcodes = [
    'and.b32',
    'or.b32',
    'xor.b32',
    'shl.b32',
    'shr.u32',
    'shr.s32',
    'add.s32',
    'sub.s32',
  ];
  const constant = fc.oneof(
    fc.integer({ min: 0, max: 255 }).map((exponent) => (exponent << 23) | 0),
    fc.constantFrom(0x7fffffff, -0x80000000, 0x7fffff, -0x7f800001, 0x3f800000, -1),
    fc.integer({ min: 0, max: 31 }).map((bit) => ~((1 << bit) - 1)),
    fc.integer({ min: -0x80000000, max: 0x7fffffff }),
  );
  const step = fc
    .tuple(fc.constantFrom(...opcodes), constant, fc.integer({ min: 0, max: 31 }))
    .map(([opcode, word, count]) => ({ opcode, word: opcode.startsWith('sh') ? count : word }));

  it('stands for a number only where the number is the one of the bits, and for a decision only where no significand has a part in it', async () => {
    const property = fc.asyncProperty(step, step, fc.integer(), async (first, second, seed) => {
      const body = `${load}
  ${first.opcode} %r5, %r4, ${first.word};
  ${second.opcode} %r6, %r5, ${second.word};
  ${store}`;
      const next = wordSource(seed);
      const [one, other] = [
        await followBody(body, numbers(next), single),
        await followBody(body, numbers(next), single),
      ];
      const isSum = [first, second].some(({ opcode }) => /^(?:add|sub)/.test(opcode));
      one.elements.forEach(({ value, bits, number, real }, thread) => {
        if (value > decidedValue) {
          // A cut takes at most the bits behind the first one.
          const cut = isCut(one.recorder.trace, value) ? Math.abs(real) / 2 : 0;
          // An exponent may fall below that of zero where both are next to nothing.
          const error = cut + 2 ** -124;
          expect(Math.abs(number - real)).toBeLessThanOrEqual(error);
        } else if (value !== lostValue && !isSum && other.elements[thread].value === value)
          expect(bits).toBe(other.elements[thread].bits);
      });
    });
    await fc.assert(property, { numRuns: scaled(60) });
  });

  it.each([
    ['a power of two by an addition to the exponent', 'add.s32 %r6, %r4, 16777216;', 4],
    ['a power of two by a subtraction', 'sub.s32 %r6, %r4, 8388608;', 0.5],
    ['the other sign', 'xor.b32 %r6, %r4, -2147483648;', -1],
    ['nothing', 'or.b32 %r6, %r4, 0;', 1],
  ])('is %s', async (_, instruction, factor) => {
    const input = numbers(wordSource(1));
    const { elements } = await followBody(`${load} ${instruction} ${store}`, input, {
      ...single,
      ...many,
    });
    const before = new Float32Array(input.buffer);
    expect(elements.map(({ real }) => real)).toEqual(
      Array.from(before, (number) => factor * number),
    );
  });

  it('is lost where the exponent becomes that of zeros or infinity, and the number of the bits elsewhere', async () => {
    const body = `${load} add.s32 %r6, %r4, ${120 * 2 ** 23}; ${store}`;
    const { elements } = await followBody(body, numbers(wordSource(2)), single);
    expect(elements.some(({ number }) => Number.isNaN(number))).toBe(true);
    for (const { value, number, real } of elements)
      if (Math.abs(number) >= 2 ** -126 && Number.isFinite(number)) expect(real).toBe(number);
      else expect(value).toBe(lostValue);
  });

  it('is a significand whose exponent is another one, and a sign that is another number’s', async () => {
    const body = `${load}
  and.b32 %r5, %r4, 8388607;  or.b32 %r6, %r5, 1065353216;
  xor.b32 %r7, %r4, -2147483648;  and.b32 %r7, %r7, -2147483648;  or.b32 %r6, %r6, %r7;
  ${store}`;
    const input = numbers(wordSource(3));
    const { elements } = await followBody(body, input, single);
    const before = new Float32Array(input.buffer);
    elements.forEach(({ real }, thread) => {
      const number = before[thread];
      expect(real).toBe(-number / 2 ** Math.floor(Math.log2(Math.abs(number))));
    });
  });

  it('swaps two values by three exclusive ors', async () => {
    const body = `${load}
  shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;
  xor.b32 %r7, %r4, %r5;  xor.b32 %r6, %r7, %r4;
  ${store}`;
    const input = numbers(wordSource(4));
    const { elements, recorder } = await followBody(body, input, { ...single, ...many });
    elements.forEach(({ value }, thread) => {
      expect(recorder.trace.operationOf(value).origin).toBe('input');
      expect(recorder.trace.b[value]).toBe(thread ^ 1);
    });
  });

  it('makes a decided power of a significand’s exponent, whose numbers are constants', async () => {
    const body = `${load} and.b32 %r5, %r4, 2139095040; mov.b32 %f0, %r5; add.f32 %f1, %f0, %f0; mov.b32 %r6, %f1; ${store}`;
    const options = { declarations: '.reg .f32 %f<4>;' };
    const { elements } = await followBody(body, numbers(wordSource(5)), single, options);
    for (const { value, real, number } of elements) {
      expect(value).toBeGreaterThan(decidedValue);
      expect(real).toBe(number);
    }
  });

  it('of a number of 64 bits: the exponent in its high word', async () => {
    const body = `${loadWide}
  mov.b64 {%r4, %r5}, %rd6;  add.s32 %r5, %r5, 3145728;  mov.b64 %rd7, {%r4, %r5};
  st.global.b64 [%rd5], %rd7;`;
    const input = doubles(wordSource(6));
    const { elements } = await followBody(body, input, { ...double, ...many });
    expect(elements.map(({ real }) => real)).toEqual(
      Array.from(new Float64Array(input.buffer), (number) => 8 * number),
    );
  });

  it('of a number of 64 bits: its words are joined again', async () => {
    const body = `${loadWide}
  cvt.u32.u64 %r4, %rd6;  mov.b64 {%r5, %r6}, %rd6;
  cvt.u64.u32 %rd7, %r4;  cvt.u64.u32 %rd8, %r6;  shl.b64 %rd8, %rd8, 32;  or.b64 %rd9, %rd7, %rd8;
  st.global.b64 [%rd5], %rd9;`;
    const { elements, recorder } = await followBody(body, doubles(wordSource(7)), {
      ...double,
      ...many,
    });
    elements.forEach(({ value }, thread) => {
      expect(recorder.trace.operationOf(value).origin).toBe('input');
      expect(recorder.trace.b[value]).toBe(thread);
    });
  });
});

it('memory that no value has been written to has none', async () => {
  const body = `ld.global.b32 %r5, [%rd1]; mov.b32 %f0, %r5; mov.b32 %r6, %f0; ${store}`;
  const options = { declarations: '.reg .f32 %f<4>;' };
  const { elements, recorder } = await followBody(body, numbers(wordSource(8)), single, options);
  expect(elements.map(({ value }) => value)).toEqual(elements.map(() => noValue));
  expect([...recorder.losses.lost]).toEqual([]);
});

it('a maximum, a minimum and a sum of a warp’s lanes are those of their values', async () => {
  const body = `${load}
  cvt.rni.s32.f32 %r7, %f0;
  redux.sync.max.f32 %r6, %r4, -1;
  ${store}`;
  const input = numbers(wordSource(9));
  const { elements } = await followBody(body, input, single, {
    target: 'sm_100a',
    declarations: '.reg .f32 %f<4>;',
  });
  const before = Array.from(new Float32Array(input.buffer));
  elements.forEach(({ real }, thread) => {
    const first = thread - (thread % 32);
    expect(real).toBe(Math.max(...before.slice(first, first + 32)));
  });
  const integers = new Int32Array(threads).map((_, i) => 37 * i - 900);
  const sums = await followBody(
    `${load} redux.sync.add.s32 %r6, %r4, -1; ${store}`,
    new Uint8Array(integers.buffer),
    {
      input: 's32',
      output: 's32',
    },
  );
  sums.elements.forEach(({ real, number }) => expect(real).toBe(number));
});
