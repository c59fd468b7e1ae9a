import { describe, expect, it } from 'vitest';
import { Idioms, RealDomain } from '../../../src/meaning/domains/index.js';
import {
  Trace,
  valueFormat,
  type Operation,
  type RealFunction,
} from '../../../src/meaning/trace/index.js';

const f32 = valueFormat('f32')!;
const bits = (x: number) => new Uint32Array(Float32Array.of(x).buffer)[0];

/** Writes a trace by what a program computes. */
class Program {
  readonly trace = new Trace(f32);
  readonly #operations = new Map<string, number>();

  #operation(site: string, origin: Operation['origin'], name: RealFunction | null): number {
    let known = this.#operations.get(site);
    if (known === undefined) {
      const operation = { origin, name: site, function: name, limit: null, format: f32, site };
      this.#operations.set(site, (known = this.trace.addOperation(operation)));
    }
    return known;
  }

  input(x: number): number {
    return this.trace.add(this.#operation('input', 'input', null), 0, 0, 0, bits(x));
  }

  constant(x: number): number {
    return this.trace.constant(f32, bits(x));
  }

  apply(site: string, name: RealFunction, x: number, ...operands: readonly number[]): number {
    const [a, b = 0, c = 0] = operands;
    return this.trace.add(this.#operation(site, 'function', name), a, b, c, bits(x));
  }

  scale(site: string, value: number, exponent: number): number {
    const x = this.trace.numberOf(value) * 2 ** exponent;
    return this.trace.add(this.#operation(site, 'scale', null), value, 0, exponent, bits(x));
  }

  /** x − n, where n is a rounded x as magic numbers make it, or as it is given. */
  rest(x: number, n: number): number {
    const magic = this.constant(1.5 * 2 ** 23);
    const rounded = this.apply('n', 'subtract', n, this.constant(1.5 * 2 ** 23 + n), magic);
    return this.apply('f', 'subtract', this.trace.numberOf(x) - n, x, rounded);
  }

  /** A polynomial by Horner's scheme; coefficients from the lowest power on. */
  horner(f: number, coefficients: readonly number[]): number {
    const { trace } = this;
    const [last, ...others] = [...coefficients].reverse();
    return others.reduce((rest, coefficient, i) => {
      const x = trace.numberOf(rest) * trace.numberOf(f) + coefficient;
      return this.apply(`p${i}`, 'fma', x, rest, f, this.constant(coefficient));
    }, this.constant(last));
  }
}

/** The relative distance of a value taken for 2^x, or null where it is not taken. */
function distanceFromExp2({ trace }: Program, value: number, x: number): number | null {
  const idioms = new Idioms(trace);
  const real = new RealDomain(trace, idioms);
  real.extend();
  const { high } = real.of(value);
  return idioms.found.length === 0 ? null : Math.abs(high / 2 ** x - 1);
}

/** The cubic of FlashAttention-4 over [0, 1], and Taylor's polynomial of degree 5 over [−1/2, 1/2]. */
const cubic = [1, 0.6951461434364319, 0.22756439447402954, 0.07711908966302872];
const taylor = [1, 2, 3, 4, 5, 6].map((_, k) =>
  Array.from({ length: k }, (__, i) => Math.LN2 / (i + 1)).reduce((p, q) => p * q, 1),
);

const arguments_ = [-126.75, -7.375, -0.125, 0.25, 0.875, 3.5, 100.0625];

describe('exp2 by a polynomial', () => {
  it.each(arguments_)('is the function at %d, by Horner, rounded down or to nearest', (x) => {
    for (const [coefficients, n] of [
      [cubic, Math.floor(x)],
      [taylor, Math.round(x)],
    ] as const) {
      const program = new Program();
      const f = program.rest(program.input(x), n);
      const value = program.scale('scale', program.horner(f, coefficients), n);
      expect(distanceFromExp2(program, value, x)).toBeLessThan(2 ** -50);
    }
  });

  it.each(arguments_)('is the function at %d by Estrin', (x) => {
    const [c0, c1, c2, c3] = cubic;
    const program = new Program();
    const n = Math.floor(x);
    const f = program.rest(program.input(x), n);
    const rest = x - n;
    const low = program.apply(
      'low',
      'fma',
      c1 * rest + c0,
      program.constant(c1),
      f,
      program.constant(c0),
    );
    const high = program.apply(
      'high',
      'fma',
      c3 * rest + c2,
      program.constant(c3),
      f,
      program.constant(c2),
    );
    const square = program.apply('square', 'multiply', rest * rest, f, f);
    const whole = (c3 * rest + c2) * rest * rest + c1 * rest + c0;
    const value = program.scale('scale', program.apply('p', 'fma', whole, square, high, low), n);
    expect(distanceFromExp2(program, value, x)).toBeLessThan(2 ** -50);
  });

  it('is the function where it is not scaled, since n is 0, if others of the place are', () => {
    const program = new Program();
    const evaluate = (x: number) =>
      program.horner(program.rest(program.input(x), Math.floor(x)), cubic);
    const unscaled = evaluate(0.625);
    const scaled = program.scale('scale', evaluate(-2.5), -3);
    expect(distanceFromExp2(program, unscaled, 0.625)).toBeLessThan(2 ** -50);
    expect(distanceFromExp2(program, scaled, -2.5)).toBeLessThan(2 ** -50);
  });

  it.each([0, 1, 2, 3])('is not what has another coefficient %i', (i) => {
    const program = new Program();
    const f = program.rest(program.input(2.75), 2);
    const other = cubic.map((coefficient, j) => coefficient + (i === j ? 0.02 : 0));
    const value = program.scale('scale', program.horner(f, other), 2);
    expect(distanceFromExp2(program, value, 2.75)).toBeNull();
  });

  it('is not what is scaled by another power than was taken off, or of nothing rounded', () => {
    for (const [n, exponent] of [
      [2, 3],
      [2, 1],
      [2, -2],
    ]) {
      const program = new Program();
      const f = program.rest(program.input(2.75), n);
      const value = program.scale('scale', program.horner(f, cubic), exponent);
      expect(distanceFromExp2(program, value, 2.75)).toBeNull();
    }
    const program = new Program();
    const value = program.scale('scale', program.horner(program.input(0.75), cubic), 2);
    expect(distanceFromExp2(program, value, 2.75)).toBeNull();
  });

  it('is told with the largest distance of its polynomial', () => {
    const program = new Program();
    const f = program.rest(program.input(2.75), 2);
    program.scale('scale', program.horner(f, cubic), 2);
    const idioms = new Idioms(program.trace);
    new RealDomain(program.trace, idioms).extend();
    const [idiom] = idioms.found;
    const errors = Array.from({ length: 10001 }, (_, i) => {
      const x = i / 10000;
      const p = cubic.reduceRight((rest, coefficient) => rest * x + coefficient, 0);
      return Math.abs(p / 2 ** x - 1);
    });
    expect(idiom).toMatchObject({ function: 'exp2', site: 'scale', degree: 3, count: 1 });
    expect(idiom.distance).toBeLessThanOrEqual(Math.max(...errors) * (1 + 1e-9));
    expect(idiom.distance).toBeGreaterThan(0.999 * Math.max(...errors));
  });
});
