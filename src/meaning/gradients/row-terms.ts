import {
  addDoubleDouble,
  doubleDouble,
  multiplyDoubleDouble,
  subtractDoubleDouble,
  type DoubleDouble,
} from '../../arith/index.js';
import type { GradientRow, SizedSum } from './gradient-row.js';
import type { DeltaSource, KeptFactor, WeightForm } from './weight-forms.js';

/** A way in which kernels make the terms of a gradient. */
export interface GradientForm {
  readonly weights: WeightForm;
  readonly kept: KeptFactor;
  readonly delta: DeltaSource;
}

/** A coefficient of a term, and the sum of the sizes of what it is made of. */
export interface RowTerms {
  readonly value: DoubleDouble;
  readonly size: number;
}

/** The coefficients of a row's terms. */
export interface EvaluatedRow {
  /** P with dropout, of the key with exponent j. */
  readonly weight: (form: GradientForm, j: number) => RowTerms;
  /** dS, before a softcap: P∘(dP − δ) times the softcap's slope. */
  readonly derivative: (form: GradientForm, j: number) => RowTerms;
}

const nothing: SizedSum = { value: doubleDouble(0), size: 0 };

/** A function whose results are kept by two keys. */
function kept<A, B, T>(make: (a: A, b: B) => T): (a: A, b: B) => T {
  const known = new Map<A, Map<B, T>>();
  return (a, b) => {
    let ofA = known.get(a);
    if (ofA === undefined) known.set(a, (ofA = new Map()));
    let value = ofA.get(b);
    if (value === undefined) ofA.set(b, (value = make(a, b)));
    return value;
  };
}

/** The terms of a row in whatever form is asked for; what forms share is made once. */
export function evaluateRow(row: GradientRow): EvaluatedRow {
  const weightsOf = kept((form: WeightForm, _: null) => form.weightsOf(row));
  const weightAt = kept((form: WeightForm, j: number) => weightsOf(form, null)(j));
  const keptProduct = kept(({ value }: KeptFactor, j: number): SizedSum => {
    const product = row.product(j);
    if (product === null) return nothing;
    return {
      value: multiplyDoubleDouble(product.value, value),
      size: product.size * value.high,
    };
  });
  const ownDelta = kept((form: WeightForm, factor: KeptFactor): SizedSum => {
    let [sum, size] = [doubleDouble(0), 0];
    row.keys.forEach((_, j) => {
      const p = weightAt(form, j);
      const product = keptProduct(factor, j);
      sum = addDoubleDouble(sum, multiplyDoubleDouble(p, product.value));
      size += p.high * product.size;
    });
    return { value: sum, size };
  });
  const deltaOf = ({ delta, weights, kept: factor }: GradientForm): SizedSum => {
    if (delta === 'Σ P·dP') return ownDelta(weights, factor);
    if (delta === 'Σ dO·O of the given O') return row.ofOut ?? nothing;
    return { value: doubleDouble(row.delta ?? NaN), size: Math.abs(row.delta ?? NaN) };
  };
  return {
    weight: ({ weights, kept: factor }, j) => {
      if (row.product(j) === null) return nothing;
      const value = multiplyDoubleDouble(weightAt(weights, j), factor.value);
      return { value, size: value.high };
    },
    derivative: (form, j) => {
      const p = weightAt(form.weights, j);
      const product = keptProduct(form.kept, j);
      const delta = deltaOf(form);
      const plain = multiplyDoubleDouble(p, subtractDoubleDouble(product.value, delta.value));
      const slope = row.slopes?.[j] ?? null;
      return {
        value: slope === null ? plain : multiplyDoubleDouble(plain, slope),
        size: p.high * (product.size + delta.size),
      };
    },
  };
}
