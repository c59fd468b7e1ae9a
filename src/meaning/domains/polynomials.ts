import { decidedValue, type Trace } from '../trace/index.js';

/** A polynomial in one value of a trace. */
export interface Polynomial {
  /** The number of the value; null for a constant. */
  readonly variable: number | null;
  /** From the lowest power on. */
  readonly coefficients: readonly number[];
}

/** The most operations that make one up: Horner's and Estrin's schemes of degree 12 have fewer. */
const mostOperations = 32;

function constant(value: number): Polynomial {
  return { variable: null, coefficients: [value] };
}

/** The variable of two polynomials; undefined where they have different ones. */
function sharedVariable(p: Polynomial, q: Polynomial): number | null | undefined {
  if (p.variable === null || q.variable === null) return p.variable ?? q.variable;
  return p.variable === q.variable ? p.variable : undefined;
}

function sum(p: Polynomial, q: Polynomial, sign: 1 | -1 = 1): Polynomial | null {
  const variable = sharedVariable(p, q);
  if (variable === undefined) return null;
  const length = Math.max(p.coefficients.length, q.coefficients.length);
  const at = ({ coefficients }: Polynomial, i: number) => coefficients[i] ?? 0;
  return {
    variable,
    coefficients: Array.from({ length }, (_, i) => at(p, i) + sign * at(q, i)),
  };
}

function product(p: Polynomial, q: Polynomial): Polynomial | null {
  const variable = sharedVariable(p, q);
  if (variable === undefined) return null;
  const coefficients = new Array<number>(p.coefficients.length + q.coefficients.length - 1).fill(0);
  p.coefficients.forEach((x, i) => {
    q.coefficients.forEach((y, j) => (coefficients[i + j] += x * y));
  });
  return { variable, coefficients };
}

/**
 * What a value is as a polynomial with constant coefficients, by the sums and products that made it; null where it is none of one
 * variable, or of more than some thirty operations. Its operations are taken as exact.
 *
 * @param isVariable whether a value is to be the variable; those that nothing else is known of are too
 */
export function polynomialOf(
  trace: Trace,
  value: number,
  isVariable: (value: number) => boolean,
): Polynomial | null {
  let operations = 0;
  const follow = (at: number): Polynomial | null => {
    if (at <= decidedValue) return null;
    const { origin, function: name, limit } = trace.operationOf(at);
    if (origin === 'constant') return constant(trace.numberOf(at));
    const isKnown = name === 'fma' || name === 'multiply' || name === 'add' || name === 'subtract';
    if (origin !== 'function' || limit !== null || !isKnown || (at !== value && isVariable(at)))
      return { variable: at, coefficients: [0, 1] };
    if (++operations > mostOperations) return null;
    const p = follow(trace.a[at]);
    const q = p && follow(trace.b[at]);
    if (p === null || q === null) return null;
    if (name === 'add' || name === 'subtract') return sum(p, q, name === 'add' ? 1 : -1);
    const scaled = product(p, q);
    if (name === 'multiply' || scaled === null) return scaled;
    const added = follow(trace.c[at]);
    return added && sum(scaled, added);
  };
  return follow(value);
}
