import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laneRows, type Variant } from '../../../src/isa/index.js';
import { tensorCoreArithmetic, tensorCoreProduct } from '../../../src/hardware/index.js';
import { ExpressionDomain } from '../../../src/meaning/domains/index.js';
import {
  decidedValue,
  type Trace,
  Trace as NewTrace,
  valueFormat,
} from '../../../src/meaning/trace/index.js';
import { scaled } from '../../setup/effort.js';
import {
  finitePatterns,
  machinePrograms,
  runMachineProgram,
  type MachineProgram,
  type MachineStep,
} from '../machine-programs.js';

const name = (input: number, element: number) => [input, element, 0] as const;

function isFinite(trace: Trace, value: number): boolean {
  return Number.isFinite(trace.numberOf(value));
}

/** A value, and its bits where it is a constant that each of them is compared with. */
interface Member {
  readonly value: number;
  readonly constant: number | null;
}

/** Values of a program by their expressions, and for each the constant of its bits. */
function groups(program: MachineProgram, inputs: readonly number[]) {
  const trace = runMachineProgram(program, inputs);
  const { count } = trace;
  const members = Array.from({ length: count }, (_, value): Member => ({ value, constant: null }))
    .slice(decidedValue + 1)
    .flatMap((member): Member[] => {
      const constant = trace.bits[member.value];
      const value = trace.constant(trace.formatOf(member.value), constant);
      return [member, { value, constant }];
    });
  const expressions = new ExpressionDomain(trace, 'sm_100', name);
  expressions.extend();
  const byHash = new Map<string, Member[]>();
  for (const member of members) {
    const hash = expressions.of(member.value).join();
    byHash.set(hash, [...(byHash.get(hash) ?? []), member]);
  }
  return {
    trace,
    count,
    alike: [...byHash.values()].filter(
      (group) => new Set(group.map(({ value }) => value)).size > 1,
    ),
  };
}

/** The steps of a program, for a reader. */
function sourceOf({ steps }: MachineProgram): unknown {
  return steps.map((step) => (step.kind === 'lane' ? [step.variant.name, step.operands] : step));
}

describe('values of one expression', () => {
  it('have the same bits for all inputs for which what is finite stays so', () => {
    let claims = 0;
    fc.assert(
      fc.property(
        machinePrograms.chain((program) => {
          const inputs = fc.array(finitePatterns(program.format), {
            minLength: program.inputs,
            maxLength: program.inputs,
          });
          return fc.tuple(
            fc.constant(program),
            inputs,
            fc.array(inputs, { minLength: 8, maxLength: 8 }),
          );
        }),
        ([program, inputs, others]) => {
          const { trace, count, alike } = groups(program, inputs);
          for (const other of others) {
            // Values have the same numbers in every run of a program.
            const run = runMachineProgram(program, other);
            const all = Array.from({ length: count }, (_, value) => value);
            if (!all.every((value) => !isFinite(trace, value) || isFinite(run, value))) continue;
            for (const group of alike) {
              const bits = group.map(({ value, constant }) => constant ?? run.bits[value]);
              if (bits.some((one) => one !== bits[0]))
                expect([group, bits]).toBe(sourceOf(program));
              claims++;
            }
          }
        },
      ),
      { numRuns: scaled(150) },
    );
    expect(claims).toBeGreaterThan(scaled(450));
  });
});

/** Powers of two of the two inputs, of which the first may be infinite; both are no −0. */
const [first, second] = [2, 3].map((value) => ({ value }));
const zero = { bits: 0 };

const variantOf = (wanted: string): Variant =>
  laneRows.flatMap((row) => row.variants()).find(({ name: found }) => found === wanted) ??
  expect.fail(wanted);

const lane = (wanted: string, ...operands: (typeof first | typeof zero)[]): MachineStep => ({
  kind: 'lane',
  variant: variantOf(wanted),
  operands,
});

/** A product of zeros and a number, and a C. */
const product = (unit: number, b: typeof first, c: typeof first): MachineStep => ({
  kind: 'product',
  unit,
  a: Array<typeof zero>(32).fill(zero),
  b: Array<typeof first>(32).fill(b),
  c: Array<typeof first>(4).fill(c),
});

/** Steps whose result is an operand, counted from the inputs, or its own bits, if the first power is finite. */
const withGuards: readonly (readonly [string, MachineStep, number | null])[] = [
  ['0·x', lane('mul.rn.f32', zero, first), null],
  ['x·0', lane('mul.rn.f32', first, zero), null],
  ['x·1', lane('mul.rn.f32', first, { bits: 0x3f800000 }), 2],
  ['x + 0', lane('add.rn.f32', first, zero), 2],
  ['x − x', lane('sub.rn.f32', first, first), null],
  ['0·y + x', lane('fma.rn.f32', zero, second, first), 2],
  ['y·0 + x', lane('fma.rn.f32', second, zero, first), 2],
  ['0·x + y', lane('fma.rn.f32', zero, first, second), 3],
  ['x·0 + y', lane('fma.rn.f32', first, zero, second), 3],
  ['x·y − ∞', lane('fma.rn.f32', first, second, { bits: 0xff800000 }), null],
  ['max(x, −∞)', lane('max.f32', first, { bits: 0xff800000 }), 2],
  ['min(∞, x)', lane('min.f32', { bits: 0x7f800000 }, first), 2],
  ...['mma.sync', 'wgmma', 'tcgen05.mma'].flatMap(
    (unit, i) =>
      [
        [`zeros times y, and x, of ${unit}`, product(i, second, first), 2],
        [`zeros times x, and y, of ${unit}`, product(i, first, second), 3],
      ] as const,
  ),
];

describe('an identity', () => {
  /** Whether the result of a step has the expression of the operand, or of its own bits. */
  const isUsed = (step: MachineStep, operand: number | null, inputs: readonly number[]) => {
    const powers = [0, 1].map((value) => lane('ex2.approx.f32', { value }));
    const program = { format: 'f32', inputs: 2, steps: [...powers, step] } as const;
    const trace = runMachineProgram(program, inputs);
    const made = Array.from({ length: trace.count }, (_, value) => value).filter(
      (value) => value > decidedValue && trace.operationOf(value).origin !== 'constant',
    );
    const result = made[made.length - 1];
    const other =
      operand === null ? trace.constant(trace.formatOf(result), trace.bits[result]) : made[operand];
    const expressions = new ExpressionDomain(trace, 'sm_100', name);
    expressions.extend();
    return expressions.of(result).join() === expressions.of(other).join();
  };
  const [one, infinite, notANumber] = [0x3f800000, 0x7f000000, 0x7fffffff];

  it.each(withGuards)('is used for finite numbers alone: %s', (_, step, operand) => {
    expect(isUsed(step, operand, [one, one])).toBe(true);
    // What is no finite number here may be a NaN with any bits elsewhere, and a number.
    expect(isUsed(step, operand, [infinite, one])).toBe(false);
    expect(isUsed(step, operand, [notANumber, one])).toBe(false);
  });
});

const formats = { fp32: 'f32', fp16: 'f16' } as const;

describe('a product of zeros and numbers', () => {
  it.each(
    tensorCoreArithmetic.map((arithmetic) => {
      const { instruction, architecture, operands, accumulator } = arithmetic;
      return [
        `${instruction} ${architecture} ${operands.join()} ${accumulator}`,
        arithmetic,
      ] as const;
    }),
  )('has C for a result only where %s leaves it as it is', (_, arithmetic) => {
    const { instruction, architecture, operands, accumulator } = arithmetic;
    const [operand] = operands;
    const format = valueFormat(formats[accumulator])!;
    const size = { m: 1, n: 1, k: 32 };
    const trace = new NewTrace(valueFormat('f32')!);
    const plain = { function: null, limit: null, site: '', format };
    const input = trace.addOperation({ ...plain, origin: 'input', name: 'in' });
    const power = trace.addOperation({
      ...plain,
      origin: 'function',
      name: 'ex2',
      function: 'exp2',
    });
    const product = trace.addOperation({
      ...plain,
      origin: 'product',
      name: `${instruction} ${operand} ${operand} ${accumulator}`,
    });
    const c = trace.add(power, trace.add(input, 0, 0, 0, 0), 0, 0, 0);
    // Those of 6 bits have no values; zeros are zeros.
    const ofOperand = valueFormat(operand) ?? valueFormat('e4m3')!;
    const zeros = new Uint32Array(size.k).fill(trace.constant(ofOperand, 0));
    const { first } = trace.addProduct(
      product,
      { ...size, a: zeros, b: zeros, c: Uint32Array.of(c), isNegated: false, scales: null },
      new Uint32Array(1),
    );
    const expressions = new ExpressionDomain(trace, architecture, name);
    expressions.extend();
    const isKept = expressions.of(first).join() === expressions.of(c).join();
    const bits = 8 * format.bytes;
    const instructionLength = { fp16: 16, bf16: 16, tf32: 8 }[operand as string] ?? 32;
    const keeps = (pattern: number): boolean => {
      const [d] = tensorCoreProduct(arithmetic, {
        ...size,
        a: new Uint32Array(size.k),
        aFormat: operand,
        bTransposed: new Uint32Array(size.k),
        bFormat: operand,
        c: [pattern],
        instructionLength,
      });
      return d === pattern;
    };
    fc.assert(
      fc.property(
        fc
          .integer({ min: 0, max: 2 ** (bits - 1) - 1 })
          .filter((pattern) => Number.isFinite(format.decode(pattern, 0))),
        (pattern) => !isKept || keeps(pattern),
      ),
      { numRuns: 300 },
    );
    // Where a rule would hold and is left out, it is one of fp8 operands.
    if (!isKept) expect(operand.startsWith('e')).toBe(true);
  });
});
