import fc from 'fast-check';
import {
  findTensorCoreArithmetic,
  tensorCoreProduct,
  type TensorCoreArithmetic,
} from '../../src/hardware/index.js';
import { laneRows, type Variant } from '../../src/isa/index.js';
import { laneRules } from '../../src/meaning/rules/index.js';
import { type Operation, Trace, valueFormat } from '../../src/meaning/trace/index.js';

/** The formats that programs compute in. */
export const formatNames = ['f32', 'f16', 'bf16'] as const;
type FormatName = (typeof formatNames)[number];

/** Sums, products, extrema, powers and signs of numbers of one format, with all their modifiers. */
const variantsOf = Object.fromEntries(
  formatNames.map((format) => [
    format,
    laneRows
      .flatMap((row) => row.variants())
      .filter(
        ({ name, meaning, sources }) =>
          new RegExp(`^(?:add|sub|mul|fma|max|min|ex2|abs|neg)(?:\\.[a-zN]+)*\\.${format}$`).test(
            name,
          ) &&
          (meaning === 'is' || meaning === 'chooses') &&
          (meaning === 'is' || sources.length === 2) &&
          !name.includes('abs.'),
      ),
  ]),
) as unknown as Record<FormatName, readonly Variant[]>;

const rounding = laneRows
  .flatMap((row) => row.variants())
  .find(({ name }) => name === 'cvt.rn.bf16.f32')!;

/** Products of bf16 that are summed up in fp32; the first has two sums. */
const products: readonly (readonly [string, TensorCoreArithmetic])[] = (
  [
    ['mma.sync', 'sm_80'],
    ['wgmma', 'sm_90'],
    ['tcgen05.mma', 'sm_100'],
  ] as const
).map(([instruction, architecture]) => [
  instruction === 'wgmma' ? 'wgmma.mma_async' : instruction,
  findTensorCoreArithmetic({ instruction, architecture, a: 'bf16' }),
]);

const [m, n, k] = [2, 2, 16] as const;

/** An operand: a value made before, counted from the first input and round again, or a constant's bits. */
type Place = { readonly value: number } | { readonly bits: number };

/** A step: an instruction on lanes, or a product of numbers that are rounded to bf16 first. */
export type MachineStep =
  | { readonly kind: 'lane'; readonly variant: Variant; readonly operands: readonly Place[] }
  | {
      readonly kind: 'product';
      readonly unit: number;
      readonly a: readonly Place[];
      readonly b: readonly Place[];
      readonly c: readonly Place[] | null;
    };

/** A straight program on numbers of a format. */
export interface MachineProgram {
  readonly format: FormatName;
  readonly inputs: number;
  readonly steps: readonly MachineStep[];
}

/** Patterns of ±0, ±∞, 1 and 2, and finite ones that are special: subnormal, the least normal, the largest. */
const patterns = {
  f32: {
    constants: [0, 0x80000000, 0x7f800000, 0xff800000, 0x3f800000, 0x40000000],
    special: [1, 0x80000001, 0x7fffff, 0x807fffff, 0x800000, 0x80800000, 0x7f7fffff, 0xff7fffff],
  },
  f16: {
    constants: [0, 0x8000, 0x7c00, 0xfc00, 0x3c00, 0x4000],
    special: [1, 0x8001, 0x3ff, 0x83ff, 0x400, 0x8400, 0x7bff, 0xfbff],
  },
  bf16: {
    constants: [0, 0x8000, 0x7f80, 0xff80, 0x3f80, 0x4000],
    special: [1, 0x8001, 0x7f, 0x807f, 0x80, 0x8080, 0x7f7f, 0xff7f],
  },
} as const;

/** Patterns of finite numbers: special ones, zeros, and any, often of moderate size. */
export function finitePatterns(format: FormatName): fc.Arbitrary<number> {
  const { bytes, decode } = valueFormat(format)!;
  const { constants, special } = patterns[format];
  const one = constants[4];
  const any = fc.integer({ min: 0, max: 2 ** (8 * bytes) - 1 });
  const spread = 2 ** (8 * bytes - 6);
  const moderate = fc
    .tuple(fc.integer({ min: one - spread, max: one + spread }), fc.boolean())
    .map(([bits, isNegative]) => bits + (isNegative ? 2 ** (8 * bytes - 1) : 0));
  return fc
    .oneof(
      { weight: 1, arbitrary: fc.constantFrom(constants[0], constants[1], ...special) },
      { weight: 1, arbitrary: any },
      { weight: 2, arbitrary: moderate },
    )
    .filter((bits) => Number.isFinite(decode(bits, 0)));
}

/** Operands, of which many are constants. */
function picks(format: FormatName, count: number): fc.Arbitrary<Place[]> {
  const { constants } = patterns[format];
  const pick: fc.Arbitrary<Place> = fc.oneof(
    { weight: 3, arbitrary: fc.nat(11).map((value) => ({ value })) },
    { weight: 2, arbitrary: fc.constantFrom(...constants).map((bits) => ({ bits })) },
  );
  return fc.array(pick, { minLength: count, maxLength: count });
}

/** Rows of which few elements are none of zeros. */
function sparsePicks(count: number): fc.Arbitrary<Place[]> {
  const zeros = fc.constantFrom(0, 0, 0, 0x80000000).map((bits): Place => ({ bits }));
  const some = fc.array(fc.tuple(fc.nat(count - 1), picks('f32', 1)), { maxLength: 4 });
  return fc
    .tuple(fc.array(zeros, { minLength: count, maxLength: count }), some)
    .map(([all, others]) => others.reduce((row, [place, [one]]) => row.with(place, one), all));
}

/** Programs of few inputs and steps, so that many steps see the same operands. */
export const machinePrograms: fc.Arbitrary<MachineProgram> = fc
  .constantFrom('f32' as const, ...formatNames)
  .chain((format) => {
    const lane = fc.constantFrom(...variantsOf[format]).chain((variant) =>
      picks(format, variant.sources.length).map((operands): MachineStep => ({
        kind: 'lane',
        variant,
        operands,
      })),
    );
    const product = fc.record({
      kind: fc.constant('product' as const),
      unit: fc.nat(products.length - 1),
      a: sparsePicks(m * k),
      b: fc.oneof(picks('f32', n * k), sparsePicks(n * k)),
      c: fc.option(picks('f32', m * n)),
    });
    const weights = [
      { weight: 6, arbitrary: lane },
      ...(format === 'f32' ? [{ weight: 1, arbitrary: product }] : []),
    ];
    return fc.record({
      format: fc.constant(format),
      inputs: fc.integer({ min: 1, max: 4 }),
      steps: fc.array(fc.oneof(...weights), { minLength: 2, maxLength: 16 }),
    });
  });

/** An operation; what is not given is that of the program's format. */
type Partly = Pick<Operation, 'origin' | 'name'> & Partial<Operation>;

/** Runs a program on the machine's own arithmetic. */
class MachineRun {
  readonly #format: FormatName;
  readonly trace: Trace;
  readonly #values: number[] = [];
  readonly #operations = new Map<string, number>();

  constructor(format: FormatName, inputs: readonly number[]) {
    this.#format = format;
    this.trace = new Trace(valueFormat('f32')!);
    inputs.forEach((bits, i) => this.#make({ origin: 'input', name: format }, [0, i, 0], bits));
  }

  #operation(part: Partly): number {
    const key = `${part.origin} ${part.name} ${part.format?.name ?? ''}`;
    let known = this.#operations.get(key);
    const format = valueFormat(this.#format)!;
    const plain = { function: null, limit: null, site: '', format };
    if (known === undefined)
      this.#operations.set(key, (known = this.trace.addOperation({ ...plain, ...part })));
    return known;
  }

  #make(part: Partly, [a, b, c]: readonly [number, number, number], bits: number): number {
    const value = this.trace.add(this.#operation(part), a, b, c, bits);
    this.#values.push(value);
    return value;
  }

  #read(pick: Place): number {
    return 'bits' in pick
      ? this.trace.constant(valueFormat(this.#format)!, pick.bits)
      : this.#values[pick.value % this.#values.length];
  }

  step(step: MachineStep): void {
    if (step.kind === 'product') return this.#product(step);
    const { variant, operands } = step;
    const { trace } = this;
    const read = operands.map((pick) => this.#read(pick));
    const bits = variant.evaluate(...read.map((value) => trace.bits[value])) as number;
    const [a, b = 0, c = 0] = read;
    if (variant.meaning === 'chooses') {
      this.#make({ origin: 'choice', name: variant.name }, [a, b, a], bits);
      return;
    }
    const { function: real, limit, name } = laneRules(variant)![0];
    this.#make({ origin: 'function', name, function: real, limit }, [a, b, c], bits);
  }

  #product({ unit, a, b, c }: Extract<MachineStep, { kind: 'product' }>): void {
    const { trace } = this;
    const [mnemonic, arithmetic] = products[unit];
    const format = valueFormat('bf16')!;
    // Picks see the values before the product's own.
    const [left, right] = [a, b].map((picked) => picked.map((pick) => this.#read(pick)));
    const start = c?.map((pick) => this.#read(pick)) ?? null;
    const rounded = (values: readonly number[]) =>
      Uint32Array.from(values, (value) => {
        const bits = rounding.evaluate(trace.bits[value]) as number;
        const operation = { origin: 'same', name: rounding.name, format } as const;
        return trace.add(this.#operation(operation), value, 0, 0, bits);
      });
    const [ofA, ofB] = [rounded(left), rounded(right)];
    const bitsOf = (values: ArrayLike<number>) => Array.from(values, (value) => trace.bits[value]);
    const d = tensorCoreProduct(arithmetic, {
      m,
      n,
      k,
      aFormat: 'bf16',
      bFormat: 'bf16',
      a: bitsOf(ofA),
      bTransposed: bitsOf(ofB),
      c: start === null ? new Uint32Array(m * n) : bitsOf(start),
    });
    const name = `${mnemonic} bf16 bf16 fp32`;
    const operands = { a: ofA, b: ofB, c: start && Uint32Array.from(start) };
    const product = { m, n, k, isNegated: false, scales: null, ...operands };
    const { first } = trace.addProduct(this.#operation({ origin: 'product', name }), product, d);
    for (let i = 0; i < m * n; i++) this.#values.push(first + i);
  }
}

/** The trace of a program on inputs; values have the same numbers whatever the inputs are. */
export function runMachineProgram(
  { format, steps }: MachineProgram,
  inputs: readonly number[],
): Trace {
  const run = new MachineRun(format, inputs);
  for (const step of steps) run.step(step);
  return run.trace;
}
