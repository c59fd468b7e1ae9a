import {
  bitsOfFloat32,
  float32Of,
  productError,
  roundSumToFloat32,
  roundSumToFloat32FlushingToZero,
} from '../../arith/index.js';
import { divideByReciprocal } from '../../hardware/index.js';
import { type Row, row } from '../row.js';
import { flushed, floatTypes } from '../values/float-type.js';
import { roundingModifiers, roundings } from '../values/rounding.js';
import {
  approximateQuotient,
  canonical,
  flushed as flushedCode,
  flushedResult,
  onWords,
  type Emit,
  type VectorFunction,
} from '../vectors/index.js';
import { call, f32x4, i32x4 } from '../webassembly/index.js';

/** A result as its fp64 value and the remaining error, of which only the sign and whether it is 0 count. */
type Approximated = readonly [value: number, error: number];

/** a / b for fp32 numbers. */
function quotient(a: number, b: number): Approximated {
  const value = a / b;
  if (!Number.isFinite(value) || value === 0 || Math.abs(b) === Infinity) return [value, 0];
  const product = value * b;
  const rest = a - product - productError(value, b, product);
  return [value, rest / b];
}

/** √a for an fp32 number. */
function squareRoot(a: number): Approximated {
  const value = Math.sqrt(a);
  if (!Number.isFinite(value) || value === 0) return [value, 0];
  const square = value * value;
  const rest = a - square - productError(value, value, square);
  return [value, rest / (2 * value)];
}

/** The chosen modifiers of a rounded operation. */
interface Modifiers {
  readonly rnd: string;
  readonly ftz: string;
}

/** The result is rounded once from the exact one. */
function rounded({ rnd, ftz }: Modifiers, compute: (a: number, b: number) => Approximated) {
  const round = ftz === '' ? roundSumToFloat32 : roundSumToFloat32FlushingToZero;
  const operand = (bits: number): number =>
    ftz === '' ? float32Of(bits) : flushed(floatTypes.f32, float32Of(bits));
  return (a: number, b: number): number => {
    const [value, error] = compute(operand(a), operand(b ?? 0));
    return bitsOfFloat32(
      !Number.isFinite(value) || value === 0 ? value : round(value, error, roundings[rnd]),
    );
  };
}

/** To nearest even alone: the others run lane by lane. */
function toNearest(
  { rnd, ftz }: Modifiers,
  keeping: VectorFunction,
  flushing: VectorFunction,
): Emit | null {
  if (rnd !== 'rn') return null;
  return onWords(ftz === '' ? keeping : flushing);
}

const one = i32x4.splat(0x3f800000);
const two = i32x4.splat(0x40000000);

const common = {
  section: 'Floating Point Instructions',
  alternatives: { rnd: roundingModifiers },
  meaning: 'is',
  unit: 'fma',
  evidence: 'silicon',
} as const;

/**
 * Quotients, reciprocals and square roots of fp32, rounded once in four modes, and division by the special function
 * unit's reciprocal. With `.ftz` the code computes twice the result too, by which it sees what is flushed.
 */
export const float32Quotients: readonly Row[] = [
  row({
    ...common,
    syntax: 'div.rnd{.ftz}.f32 d, a, b',
    evaluate: (chosen) => rounded(chosen, quotient),
    emit: (chosen) =>
      toNearest(
        chosen,
        (body, a, b) => canonical(body.keep(f32x4.div(a, b))),
        (body, a, b) => {
          const [x, y] = [body.keep(flushedCode(a)), body.keep(flushedCode(b))];
          const result = flushedResult(f32x4.div(x, y), f32x4.div(f32x4.add(x, x), y));
          return canonical(body.keep(result));
        },
      ),
  }),
  row({
    ...common,
    syntax: 'rcp.rnd{.ftz}.f32 d, a',
    evaluate: (chosen) => rounded(chosen, (a) => quotient(1, a)),
    emit: (chosen) =>
      toNearest(
        chosen,
        (body, a) => canonical(body.keep(f32x4.div(one, a))),
        (body, a) => {
          const x = body.keep(flushedCode(a));
          return canonical(body.keep(flushedResult(f32x4.div(one, x), f32x4.div(two, x))));
        },
      ),
  }),
  row({
    ...common,
    syntax: 'sqrt.rnd{.ftz}.f32 d, a',
    evaluate: (chosen) => rounded(chosen, squareRoot),
    emit: (chosen) =>
      toNearest(
        chosen,
        (body, a) => canonical(body.keep(f32x4.sqrt(a))),
        (body, a) => canonical(body.keep(f32x4.sqrt(body.keep(flushedCode(a))))),
      ),
  }),
  row({
    syntax: 'div.accuracy{.ftz}.f32 d, a, b',
    alternatives: { accuracy: ['.full', '.approx'] },
    evaluate:
      ({ accuracy, ftz }) =>
      (a: number, b: number) =>
        bitsOfFloat32(
          divideByReciprocal(float32Of(a), float32Of(b), {
            isFull: accuracy === 'full',
            flushes: ftz !== '',
          }),
        ),
    emit: ({ accuracy, ftz }) => {
      const subroutine = approximateQuotient({ isFull: accuracy === 'full', flushes: ftz !== '' });
      return onWords((_, a, b) => call(subroutine, a, b));
    },
    meaning: 'is',
    unit: 'mufu',
    evidence: 'silicon',
    section: 'Floating Point Instructions',
    also: 'the multiplications around rcp.approx.ftz.f32 are those that ptxas 12.8 issues for sm_90',
  }),
];
