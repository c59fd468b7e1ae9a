import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addOutputErrors,
  addRounding,
  boundOfSum,
  passWriteErrors,
  setOutgoing,
  setProduct,
} from '../../../oracles/recurrent/adjoint-radius.js';
import { keyVector, readKeyVector } from '../../../oracles/recurrent/key-vector.js';
import { throughNormalisation } from '../../../oracles/recurrent/normalised-gradient.js';
import { roundingsOfProblem } from '../../../oracles/recurrent/radius.js';
import { randomValues } from '../../../properties/problems/values.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { loadMpfr, type Arena, type Real } from '../mpfr.js';

const mpfr = await loadMpfr();
const parameters = { seed: testSeed, numRuns: scaled(100) };
type Random = ReturnType<typeof randomValues>;

const one = (x: number) => Float64Array.of(x);
const vector = (x: number, error = 0) => ({ values: one(x), radius: one(error) });
const column = (radius: number, norm = 0) => ({ radius: one(radius), norm: one(norm) });
const exact = { vector: 0, dot: 0 };

/** Expects a bound that errors of the size that it was given attain, but for roundings. */
function expectAttained(bound: number, attained: number): void {
  expect(bound).toBeGreaterThanOrEqual(attained * (1 - 2 ** -45));
  expect(bound).toBeLessThanOrEqual(attained * (1 + 2 ** -30) + 2 ** -480);
}

describe('a bound is attained by errors that all point the same way:', () => {
  const property = (check: (random: Random) => void) =>
    fc.assert(
      fc.property(fc.nat(), (seed) => check(randomValues(seed))),
      parameters,
    );

  it('those of a sum', () =>
    property((random) => {
      const draw = () => Float64Array.of(random.uniform(), random.uniform(), random.uniform());
      const [a, aError, x, xError, relative] = [draw(), draw(), draw(), draw(), random.uniform()];
      const errors = { radius: aError, norm: a };
      const found = boundOfSum(errors, { values: x, radius: xError }, relative);
      const sum = (term: (c: number) => number) => [0, 1, 2].reduce((s, c) => s + term(c), 0);
      const computed = sum((c) => a[c] * x[c] * (1 - relative));
      expectAttained(found.radius, sum((c) => (a[c] + aError[c]) * (x[c] + xError[c])) - computed);
      expectAttained(
        found.magnitude,
        sum((c) => a[c] * x[c]),
      );
    }));

  it('those of a query and of what an output adds along it', () =>
    property((random) => {
      const [q, a, aError] = [random.uniform(), random.uniform(), random.uniform()];
      const [before, error] = [random.uniform(), random.uniform() * 2 ** -20];
      const errors = column(before);
      addOutputErrors(errors, q, vector(a, aError), { vector: error, dot: 0 }, one(0));
      expectAttained(errors.radius[0], before + q * (a + aError) - (q - q * error) * a);
    }));

  it('those of a key that a delta write spreads along, and of its sums', () =>
    property((random) => {
      const [k, g, strength] = [1 + random.uniform(), random.uniform(), 1 + random.uniform()];
      const [error, dot] = [1 + random.uniform(), 1 + random.uniform()];
      const y = strength * k * g;
      const errors = column(0, g);
      const token = { keyNorm: k, strength };
      passWriteErrors(errors, token, { vector: error, dot }, one(y), one(0));
      expectAttained(errors.radius[0], k * (y * dot + y * error));
    }));
});

it('moves the radius of a gradient past a delta write as an error moves: along the key, and across it', () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const random = randomValues(seed);
      const draw = () => [random.normal(), random.normal(), random.normal()];
      const [key, error, beta] = [draw(), draw(), 3 * random.normal()];
      const norm = (x: readonly number[]) => Math.hypot(...x);
      const dot = (x: readonly number[], y: readonly number[]) =>
        x.reduce((sum, xi, i) => sum + xi * y[i], 0);
      for (const moved of [error, key]) {
        const errors = column(norm(moved));
        const token = { keyNorm: norm(key), strength: beta };
        passWriteErrors(errors, token, exact, one(0), one(0));
        const after = norm(moved.map((x, i) => x - beta * key[i] * dot(key, moved)));
        const largest = norm(moved) * Math.max(1, Math.abs(1 - beta * dot(key, key)));
        expect(after).toBeLessThanOrEqual(errors.radius[0] * (1 + 2 ** -45) + 2 ** -490);
        expect(errors.radius[0]).toBeLessThanOrEqual(largest * (1 + 2 ** -30) + 2 ** -490);
      }
    }),
    parameters,
  );
});

/** A computed number, its radius, and the exact one. */
type Rounded = readonly [computed: number, radius: number, exact: (arena: Arena) => Real];

/** A column g that passes a delta write by a key of one element, where g is a power of two and so read exactly. */
function written(k: number, strength: number): Rounded {
  const y = -(strength * k);
  const h = 1 + k * y;
  const errors = column(0, 1);
  passWriteErrors(errors, { keyNorm: Math.abs(k), strength }, exact, one(y), one(h * h));
  return [
    h,
    errors.radius[0],
    (arena) => {
      const square = arena.multiply(arena.of(k), arena.of(k));
      return arena.subtract(arena.of(1), arena.multiply(arena.of(strength), square));
    },
  ];
}

function normalised(random: Random): Rounded {
  const [x, y] = [random.normal(), random.normal()];
  const query = keyVector(4);
  readKeyVector(
    tensor('fp64', [1, 1, 1, 1], () => x),
    0,
    0.3,
    query,
  );
  const found = { values: one(0), radius: one(0), magnitude: one(0) };
  const bound = { radius: 0, magnitude: Math.abs(y) };
  throughNormalisation(
    query,
    Float64Array.of(y, 0, 0, 0),
    bound,
    roundingsOfProblem(4, true),
    found,
  );
  return [
    found.values[0],
    found.radius[0],
    (arena) => {
      // (y − x̂² y) / n = y ε / n³, with n² = x² + ε.
      const [root, epsilon] = [arena.of(x), arena.of(0.3)];
      const squares = arena.add(arena.multiply(root, root), epsilon);
      const cube = arena.multiply(squares, arena.squareRoot(squares));
      return arena.divide(arena.multiply(arena.of(y), epsilon), cube);
    },
  ];
}

const roundings: Readonly<Record<string, readonly [share: number, (random: Random) => Rounded]>> = {
  'scale · dO': [
    0.9,
    (random) => {
      const [scale, dout] = [random.normal(), random.normal()];
      const outgoing = vector(0);
      setOutgoing(scale, one(dout), outgoing);
      const product = (arena: Arena) => arena.multiply(arena.of(scale), arena.of(dout));
      return [outgoing.values[0], outgoing.radius[0], product];
    },
  ],
  'a product with β': [
    0.9,
    (random) => {
      const [beta, x, error] = [random.normal(), random.normal(), 2 ** -53 * random.normal()];
      const product = vector(0);
      setProduct(beta, vector(x, Math.abs(error)), product);
      const sum = (arena: Arena) => arena.add(arena.of(x), arena.of(error));
      const exactly = (arena: Arena) => arena.multiply(arena.of(beta), sum(arena));
      return [product.values[0], product.radius[0], exactly];
    },
  ],
  'what a state lacks of a value': [
    0.9,
    (random) => {
      const [value, read] = [random.normal(), random.normal()];
      const missing = vector(value - read);
      addRounding(missing);
      const difference = (arena: Arena) => arena.subtract(arena.of(value), arena.of(read));
      return [missing.values[0], missing.radius[0], difference];
    },
  ],
  'the products of a delta write': [
    0.6,
    (random) => {
      const k = 0.75 + random.uniform();
      return written(k, (1 + random.uniform() * 2 ** -20) / k / k);
    },
  ],
  'the sum of a delta write': [
    0.5,
    (random) => written(random.normal(), random.normal() * 2 ** -30),
  ],
  'a projection off the query': [0.1, normalised],
};

it.each(Object.entries(roundings))('holds what rounds in %s', (_, [share, draw]) => {
  const random = randomValues(testSeed);
  let largest = 0;
  for (let run = 0; run < scaled(500); run++) {
    const [computed, radius, number] = draw(random);
    const found = mpfr.withPrecision(400, (arena) => {
      return arena.distance(number(arena), computed) / radius;
    });
    expect(found).toBeLessThanOrEqual(1);
    largest = Math.max(largest, found);
  }
  expect(largest).toBeGreaterThan(share);
});
