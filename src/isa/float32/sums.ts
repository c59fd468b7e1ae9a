import {
  addFloat32,
  bitsOfFloat32,
  type Float32Options,
  float32Of,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../arith/index.js';
import { pairsOf } from '../pairs.js';
import { type Row, row } from '../row.js';
import { roundingModifiers, roundings, saturated } from '../values/rounding.js';
import {
  canonical,
  directedForms,
  eachHalf,
  type Emit,
  flushed,
  flushingProduct,
  fusedMultiplyAdd,
  onWords,
  saturated as saturatedCode,
  type VectorFunction,
} from '../vectors/index.js';
import { call, type Expression, f32x4, f64x2 } from '../webassembly/index.js';

/** The chosen modifiers of a rounded operation. */
interface Modifiers {
  readonly rnd: string;
  readonly ftz: string;
  readonly sat: string;
}

/** The default of src/arith is `.rn` without `.ftz`, and its fastest path. */
function optionsOf({ rnd, ftz }: Modifiers): Float32Options | undefined {
  const rounding = roundings[rnd] ?? 'nearest-even';
  return rounding === 'nearest-even' && ftz === ''
    ? undefined
    : { rounding, flushToZero: ftz !== '' };
}

type Compute = (a: number, b: number, c: number, options?: Float32Options) => number;

/** The result is rounded once from the exact one; every NaN is 0x7fffffff. */
function rounded(modifiers: Modifiers, compute: Compute) {
  const options = optionsOf(modifiers);
  const value = (a: number, b: number, c: number): number =>
    compute(float32Of(a), float32Of(b), float32Of(c), options);
  return modifiers.sat === ''
    ? (a: number, b: number, c: number): number => bitsOfFloat32(value(a, b, c))
    : (a: number, b: number, c: number): number => bitsOfFloat32(saturated(value(a, b, c)));
}

/** An operation on four lanes. */
interface Code {
  readonly nearest: VectorFunction;
  readonly nearestFlushing: VectorFunction;
  readonly directed: ReturnType<typeof directedForms>;
}

function emitted({ rnd, ftz, sat }: Modifiers, code: Code): Emit {
  const { nearest, nearestFlushing, directed } = code;
  const compute = (): VectorFunction => {
    if (rnd === '' || rnd === 'rn') return ftz === '' ? nearest : nearestFlushing;
    const { keeping, flushing } = directed[rnd as keyof typeof directed];
    const subroutine = ftz === '' ? keeping : flushing;
    return (_, ...operands) => call(subroutine, ...operands.slice(0, subroutine.parameters));
  };
  const plain = compute();
  return onWords(
    sat === '' ? plain : (body, a, b, c, d) => saturatedCode(body, plain(body, a, b, c, d)),
  );
}

type Vectors = (a: Expression, b: Expression) => Expression;

function sumCode(name: string, compute: Vectors, sign: (b: Expression) => Expression): Code {
  return {
    nearest: (body, a, b) => canonical(body.keep(compute(a, b))),
    // A subnormal sum is exact, so that none is rounded up to 2^-126.
    nearestFlushing: (body, a, b) =>
      canonical(
        body.keep(flushed(body.keep(compute(body.keep(flushed(a)), body.keep(flushed(b)))))),
      ),
    directed: directedForms({
      name,
      operands: 2,
      terms: ([a, b]) => [a, eachHalf((half) => sign(b[half]))],
    }),
  };
}

const addCode = sumCode('add', f32x4.add, (b) => b);
const subtractCode = sumCode('sub', f32x4.sub, f64x2.neg);
const multiplyCode: Code = {
  nearest: (body, a, b) => canonical(body.keep(f32x4.mul(a, b))),
  nearestFlushing: flushingProduct,
  directed: directedForms({
    name: 'mul',
    operands: 2,
    terms: ([a, b]) => [eachHalf((half) => f64x2.mul(a[half], b[half])), null],
  }),
};
const fusedCode: Code = {
  nearest: (body, a, b, c) => canonical(fusedMultiplyAdd(body, [a, b, c], false)),
  nearestFlushing: (body, a, b, c) => {
    const [x, y, z] = [a, b, c].map((operand) => body.keep(flushed(operand)));
    return canonical(fusedMultiplyAdd(body, [x, y, z], true));
  },
  directed: directedForms({
    name: 'fma',
    operands: 3,
    terms: ([a, b, c]) => [eachHalf((half) => f64x2.mul(a[half], b[half])), c],
  }),
};

/** The machine has no `.sat`. */
function isOfMachine({ sat }: Modifiers): boolean {
  return sat === '';
}

const common = {
  section: 'Floating Point Instructions',
  alternatives: { rnd: roundingModifiers },
  meaning: 'is',
  unit: 'fma',
  evidence: 'silicon',
} as const;

const add = row({
  ...common,
  syntax: 'add{.rnd}{.ftz}{.sat}.f32 d, a, b',
  evaluate: (chosen) => rounded(chosen, (a, b, _, options) => addFloat32(a, b, options)),
  emit: (chosen) => emitted(chosen, addCode),
  isOfMachine,
});

const sub = row({
  ...common,
  syntax: 'sub{.rnd}{.ftz}{.sat}.f32 d, a, b',
  evaluate: (chosen) => rounded(chosen, (a, b, _, options) => subtractFloat32(a, b, options)),
  emit: (chosen) => emitted(chosen, subtractCode),
  isOfMachine,
});

const mul = row({
  ...common,
  syntax: 'mul{.rnd}{.ftz}{.sat}.f32 d, a, b',
  evaluate: (chosen) => rounded(chosen, (a, b, _, options) => multiplyFloat32(a, b, options)),
  emit: (chosen) => emitted(chosen, multiplyCode),
  isOfMachine,
});

const fma = row({
  ...common,
  syntax: 'fma.rnd{.ftz}{.sat}.f32 d, a, b, c',
  evaluate: (chosen) => rounded(chosen, fusedMultiplyAddFloat32),
  emit: (chosen) => emitted(chosen, fusedCode),
  isOfMachine,
});

/** Another name of `fma`. */
const mad = row({
  ...common,
  syntax: 'mad.rnd{.ftz}{.sat}.f32 d, a, b, c',
  evaluate: (chosen) => rounded(chosen, fusedMultiplyAddFloat32),
  emit: (chosen) => emitted(chosen, fusedCode),
});

/** Packed in pairs, from sm_100 on: an H200 has none of them to compare with. */
const ofPairs = { alternatives: common.alternatives, evidence: 'isa' } as const;

/**
 * Sums and products of fp32 in four rounding modes, rounded once from the exact result as in src/arith, also packed in
 * pairs. Without a mode they round as `.rn` does; ptxas may fuse such a product and such a sum into an `fma`, which here
 * are two instructions with two roundings.
 */
export const float32Sums: readonly Row[] = [
  ...[add, sub, mul, fma, mad],
  pairsOf(add, { ...ofPairs, syntax: 'add{.rnd}{.ftz}.f32x2 d, a, b' }),
  pairsOf(sub, { ...ofPairs, syntax: 'sub{.rnd}{.ftz}.f32x2 d, a, b' }),
  pairsOf(mul, { ...ofPairs, syntax: 'mul{.rnd}{.ftz}.f32x2 d, a, b' }),
  pairsOf(fma, { ...ofPairs, syntax: 'fma.rnd{.ftz}.f32x2 d, a, b, c' }),
];
