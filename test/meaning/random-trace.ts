import fc from 'fast-check';
import { evaluateReal, type RealFunction } from '../../src/meaning/rules/index.js';
import { type ProductTrace, Trace, valueFormat } from '../../src/meaning/trace/index.js';
import { doubleDouble } from '../../src/arith/index.js';

/** Functions of a program, with the number of their operands. */
const functions = {
  add: 2,
  subtract: 2,
  multiply: 2,
  fma: 3,
  divide: 2,
  exp2: 1,
  negate: 1,
  copysign: 2,
  choice: 2,
  same: 1,
} as const;
type Name = keyof typeof functions;

/** Dimensions of the products of a program. */
const [m, n, k] = [2, 2, 3] as const;

/** A step of a program: operands are values made before, counted from its inputs. */
export type Step =
  | { readonly kind: 'lane'; readonly name: Name; readonly operands: readonly number[] }
  | { readonly kind: 'constant'; readonly number: number }
  | {
      readonly kind: 'product';
      readonly a: readonly number[];
      readonly b: readonly number[];
      readonly c: readonly number[] | null;
      readonly scales: readonly number[] | null;
    };

/** A straight program on fp32 numbers. */
export interface Program {
  readonly inputs: readonly number[];
  readonly steps: readonly Step[];
}

/** Numbers of which many swallow others. */
export const numbers = fc.oneof(
  fc.constantFrom(0, -0, 1, -2, 0.5, Infinity, -Infinity),
  fc.integer({ min: -8, max: 8 }),
);

const places = (count: number) => fc.array(fc.nat(), { minLength: count, maxLength: count });

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .constantFrom(...(Object.keys(functions) as Name[]))
      .chain((name) =>
        places(functions[name]).map((operands) => ({ kind: 'lane' as const, name, operands })),
      ),
  },
  { weight: 4, arbitrary: numbers.map((number) => ({ kind: 'constant' as const, number })) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('product' as const),
      a: places(m * k),
      b: places(n * k),
      c: fc.option(places(m * n)),
      scales: fc.option(places(m + n)),
    }),
  },
);

/** Programs of a few inputs and steps. */
export const programs: fc.Arbitrary<Program> = fc.record({
  inputs: fc.array(numbers, { minLength: 3, maxLength: 8 }),
  steps: fc.array(steps, { minLength: 1, maxLength: 25 }),
});

function laneResult(name: Name, operands: readonly number[]): number {
  const [a, b = 0, c = 0] = operands;
  if (name === 'choice') return Math.max(a, b);
  if (name === 'same') return a;
  if (name === 'exp2') return Math.fround(2 ** a);
  return Math.fround(
    evaluateReal(name as RealFunction, doubleDouble(a), doubleDouble(b), doubleDouble(c)).high,
  );
}

/** The values of a program, of its inputs first, each rounded to fp32; products add in ascending order. */
export function valuesOf({ steps: all }: Program, inputs: readonly number[]): number[] {
  const values = [...inputs];
  const at = (place: number): number => values[place % values.length];
  for (const step of all) {
    if (step.kind === 'constant') values.push(step.number);
    else if (step.kind === 'lane') values.push(laneResult(step.name, step.operands.map(at)));
    else {
      const { scales } = step;
      const d = Array.from({ length: m * n }, (_, e) => {
        const [i, j] = [Math.floor(e / n), e % n];
        const scale = scales === null ? 1 : at(scales[i]) * at(scales[m + j]);
        let sum = step.c === null ? 0 : at(step.c[e]);
        for (let x = 0; x < k; x++) sum += at(step.a[i * k + x]) * at(step.b[j * k + x]) * scale;
        return Math.fround(sum);
      });
      values.push(...d);
    }
  }
  return values;
}

const f32 = valueFormat('f32')!;

function bitsOf(number: number): number {
  return new Uint32Array(Float32Array.of(number).buffer)[0];
}

/** The trace of a program, and the numbers of its values. */
export function traceOf(program: Program): {
  readonly trace: Trace;
  readonly values: readonly number[];
} {
  const trace = new Trace(f32);
  const results = valuesOf(program, program.inputs);
  const shared = { name: '', function: null, limit: null, format: f32, site: '' } as const;
  const operations = new Map<string, number>();
  const operation = (name: Name | 'input' | 'product'): number => {
    const known = operations.get(name);
    if (known !== undefined) return known;
    const hasOrigin =
      name === 'input' || name === 'product' || name === 'choice' || name === 'same';
    const added = trace.addOperation(
      hasOrigin ? { ...shared, origin: name } : { ...shared, origin: 'function', function: name },
    );
    operations.set(name, added);
    return added;
  };
  const values: number[] = program.inputs.map((input, i) =>
    trace.add(operation('input'), 0, i, 0, bitsOf(input)),
  );
  const at = (place: number): number => values[place % values.length];
  const all = (some: readonly number[]): Uint32Array => Uint32Array.from(some, at);
  for (const step of program.steps) {
    const bits = (i = 0): number => bitsOf(results[values.length + i]);
    if (step.kind === 'constant') values.push(trace.constant(f32, bits()));
    else if (step.kind === 'lane') {
      const [a, b = 0, c = 0] = step.operands.map(at);
      // The third of a choice is the winner.
      const isFirst = Object.is(trace.numberOf(a), results[values.length]);
      const last = step.name === 'choice' ? (isFirst ? a : b) : c;
      values.push(trace.add(operation(step.name), a, b, last, bits()));
    } else {
      const { scales } = step;
      const factors = scales && { a: all(scales.slice(0, m)), b: all(scales.slice(m)), block: k };
      const product: Omit<ProductTrace, 'first'> = {
        m,
        n,
        k,
        a: all(step.a),
        b: all(step.b),
        c: step.c && all(step.c),
        isNegated: false,
        scales: factors,
      };
      const d = Uint32Array.from({ length: m * n }, (_, i) => bits(i));
      const { first } = trace.addProduct(operation('product'), product, d);
      for (let i = 0; i < m * n; i++) values.push(first + i);
    }
  }
  return { trace, values };
}
