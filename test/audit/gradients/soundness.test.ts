import { describe, expect, it } from 'vitest';
import { attentionOracle, gradientOracle, type Gradient } from '../../../oracles/index.js';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import {
  anyGradientPremises,
  createGradientBounds,
  eagerGradientPremises,
  placeCount,
  techniquesByPlace,
  type GradientPremises,
  type GradientTechniqueBound,
} from '../../../src/audit/gradients/bounds/index.js';
import { decodeTensor, type FormatName } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import {
  featuredProblem,
  oracleFeatures,
  type OracleFeature,
} from '../../oracles/attention/features/featured-problems.js';
import { fromEnvironment, scaled, testSeed } from '../../setup/effort.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import {
  orders,
  roundings,
  simulateBackward,
  tanhs,
  type Rounding,
  type SimulatedGradients,
  type Simulation,
} from './simulated-backward.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const problems = fromEnvironment('GRADIENT_PROBLEMS', scaled(8));

function choose<T>(random: RandomValues, values: readonly T[]): T {
  return values[random.integer(0, values.length - 1)];
}

/** The gradient of O, drawn. */
function drawDout({ q, v }: Problem, value: () => number): Tensor {
  return tensor(q.format, [...q.shape.slice(0, -1), v.shape.at(-1)!], value);
}

/** A simulation of any kind, with these roundings. */
function drawSimulation(random: RandomValues, makes: readonly Rounding[]): Simulation {
  return {
    makes: new Set(makes),
    order: choose(random, orders),
    delta: choose(random, ['stored-output', 'weights'] as const),
    roundsWeights: random.integer(0, 1) === 1,
    scalesFirst: random.integer(0, 1) === 1,
    storesHeads: random.integer(0, 1) === 1,
    isWritten: false,
    exponential: choose(random, [-1, 1, 'drawn'] as const),
    tanh: choose(random, Object.keys(tanhs) as (keyof typeof tanhs)[]),
    uniform: random.uniform,
  };
}

/** Errors of a simulation over its bounds, element by element. */
class BoundUse {
  readonly violations: string[] = [];
  readonly margins: number[] = [];
  squares = 0;
  elements = 0;
  infinite = 0;
  /** Largest error of a row, all columns together, over the share of the technique that alone has erred. */
  shareUse = 0;

  /** @param places of the techniques that alone have erred; null for all */
  add(
    what: string,
    { values, radius }: Gradient,
    output: Float64Array,
    bound: GradientTechniqueBound,
    places: readonly number[] | null,
  ): void {
    this.#addShares(what, { values, radius }, output, bound, places);
    values.forEach((value, at) => {
      const limit = bound.total[at];
      this.elements++;
      if (limit === Infinity) {
        this.infinite++;
        return;
      }
      const error = Math.abs(output[at] - value - bound.shift[at]);
      const { deviation, systematic } = bound;
      if (!(error <= limit))
        this.violations.push(
          `${what}[${at}] is ${output[at]}, exactly ${value} moved by ${bound.shift[at]}: off by ${error}, at most ${limit}`,
        );
      if (!(deviation[at] >= 0 && systematic[at] <= limit * (1 + 2 ** -10)))
        this.violations.push(
          `${what}[${at}] spreads by ${deviation[at]} and ${systematic[at]} of ${limit}`,
        );
      if (error > 0) this.margins.push(limit / error);
      if (deviation[at] > 0) this.squares += (error / deviation[at]) ** 2;
    });
  }

  /** That techniques' shares come to the bounds, and what one alone does is within its own. */
  #addShares(
    what: string,
    { values, radius }: Pick<Gradient, 'values' | 'radius'>,
    output: Float64Array,
    { techniques: { worst, variance }, total, deviation, shift }: GradientTechniqueBound,
    places: readonly number[] | null,
  ): void {
    const rows = worst.length / placeCount;
    const dim = values.length / rows;
    for (let row = 0; row < rows; row++) {
      const sumOf = (of: (at: number) => number) => {
        let sum = 0;
        for (let at = row * dim; at < (row + 1) * dim; at++) sum += of(at);
        return sum;
      };
      const bounded = sumOf((at) => total[at]);
      if (bounded === Infinity) continue;
      const sharesOf = (of: Float64Array) =>
        of.subarray(row * placeCount, (row + 1) * placeCount).reduce((sum, x) => sum + x, 0);
      const radii = sumOf((at) => radius[at]);
      const squares = sumOf((at) => deviation[at] ** 2);
      if (!(Math.abs(sharesOf(worst) + radii - bounded) <= 2 ** -30 * bounded))
        this.violations.push(
          `${what} row ${row}: shares of ${sharesOf(worst)} are not ${bounded} less ${radii}`,
        );
      if (!(Math.abs(sharesOf(variance) - squares) <= 2 ** -30 * squares))
        this.violations.push(
          `${what} row ${row}: variances of ${sharesOf(variance)} are not ${squares}`,
        );
      if (places === null) continue;
      const share = places.reduce((sum, place) => sum + worst[row * placeCount + place], 0);
      const error = sumOf((at) => Math.abs(output[at] - values[at] - shift[at]));
      // The simulation itself is in fp64.
      const noise = radii + 2 ** -22 * bounded;
      if (!(error <= share + noise))
        this.violations.push(`${what} row ${row}: off by ${error}, its technique by ${share}`);
      if (error > noise) this.shareUse = Math.max(this.shareUse, error / share);
    }
  }
}

/**
 * The places of the techniques that the errors of a gradient count with where one rounding alone is made; null where several
 * are, or none that the gradient knows. D that is made of weights has their errors: they count with it. Numbers that are rounded to
 * the format of the arithmetic are no rounding of an operand: P's counts with what makes it, a head's share with the sum, and so
 * does a head's share that is scaled.
 */
function placesOf(
  gradient: 'dq' | 'dk' | 'dv',
  { makes, delta, storesHeads }: Simulation,
  { p, partials }: GradientPremises,
): readonly number[] | null {
  const [made, ...others] = makes;
  if (others.length > 0) return null;
  const ofWeights: readonly Rounding[] = ['lse-input', 'p-recompute', 'dp-accumulate'];
  const names = [
    made === 'accumulate' ? `${gradient}-accumulate` : made,
    ...(delta === 'weights' && ofWeights.includes(made) ? ['delta'] : []),
    ...(made === 'p-round' && p === 'fp32' ? ['p-recompute'] : []),
    ...((made === 'group-sum' && partials === 'fp32') || (made === 'scale' && storesHeads)
      ? [`${gradient}-accumulate`]
      : []),
  ];
  const places = names.map((name) => techniquesByPlace[gradient].findIndex((one) => one === name));
  return places.every((place) => place < 0) ? null : places.filter((place) => place >= 0);
}

/** Judges a simulation by bounds with these premises. */
function judge(
  problem: Problem,
  dout: Tensor,
  premises: GradientPremises,
  simulation: Simulation,
  isGiven: boolean,
  uses: Record<'dq' | 'dk' | 'dv', BoundUse>,
): SimulatedGradients {
  const reference = attentionOracle(problem);
  const found = simulateBackward(problem, dout, reference, premises, simulation);
  const given = isGiven ? { out: found.out, lse: found.lse } : { out: null, lse: null };
  const boundGroup = createGradientBounds({ problem, dout, reference, premises, given });
  for (const group of gradientOracle(problem, dout)) {
    const bounds = boundGroup(group);
    const of = (all: Float64Array, length: number, index: number) =>
      all.subarray(index * length, (index + 1) * length);
    group.heads.forEach(({ head, dq }, i) => {
      uses.dq.add(
        `head ${head}: dq`,
        dq!,
        of(found.dq, dq!.values.length, head),
        bounds.heads[i].dq!,
        placesOf('dq', simulation, premises),
      );
    });
    const { kvHead, dk, dv } = group;
    if (dk === null || dv === null) continue;
    const [ofKeys, ofValues] = [
      placesOf('dk', simulation, premises),
      placesOf('dv', simulation, premises),
    ];
    uses.dk.add('dk', dk, of(found.dk, dk.values.length, kvHead), bounds.dk!, ofKeys);
    uses.dv.add('dv', dv, of(found.dv, dv.values.length, kvHead), bounds.dv!, ofValues);
  }
  return found;
}

const newUses = () => ({ dq: new BoundUse(), dk: new BoundUse(), dv: new BoundUse() });

function expectSound(uses: Record<string, BoundUse>, what: string): void {
  const violations = Object.values(uses).flatMap((use) => use.violations);
  if (violations.length > 0)
    throw new Error(`${what}: ${violations.length} beyond\n${violations.slice(0, 5).join('\n')}`);
}

/** What makes gradients hard, beside features. */
const regimes = [
  'plain',
  'large scores',
  'large dout',
  'cancelling',
  'one key',
  'deeply negative',
  'tiny',
] as const;

function drawProblem(random: RandomValues, features: readonly OracleFeature[]) {
  const regime = choose(random, regimes);
  const keys = regime === 'one key' ? 1 : random.integer(1, 20);
  const groupSize = random.integer(1, 3);
  const kvHeads = random.integer(1, 2);
  const sizes = {
    queries: random.integer(1, 12),
    keys,
    heads: groupSize * kvHeads,
    kvHeads,
    dim: random.integer(1, 9),
    vDim: random.integer(1, 9),
  };
  const drawn = featuredProblem(random, features, sizes);
  const times = (of: Tensor, factor: number): Tensor => {
    const values = decodeTensor(of);
    return tensor(of.format, of.shape, (i) => factor * values[i]);
  };
  const format = drawn.q.format;
  const constant = (of: Tensor): Tensor => {
    const values = decodeTensor(of);
    return tensor(
      of.format,
      of.shape,
      (i) => values[i % of.shape.at(-1)!] + (i % 7 === 0 ? 2 ** -6 : 0),
    );
  };
  const problem =
    regime === 'large scores'
      ? { ...drawn, q: times(drawn.q, 30) }
      : regime === 'cancelling'
        ? { ...drawn, v: constant(drawn.v) }
        : regime === 'deeply negative'
          ? { ...drawn, q: tensor(format, drawn.q.shape, () => 12), k: times(drawn.k, -8) }
          : regime === 'tiny'
            ? { ...drawn, v: times(drawn.v, 2 ** -14), k: times(drawn.k, 2 ** -10) }
            : drawn;
  const size =
    regime === 'large dout' ? choose(random, [300, 2e4]) : choose(random, [2 ** -12, 1, 1]);
  const dout = drawDout(problem, () => size * random.normal());
  const output: FormatName = format === 'fp64' ? 'fp32' : format;
  return { problem, dout, output, regime };
}

/** Premises that admit a simulation. */
function drawPremises(
  random: RandomValues,
  problem: Problem,
  output: FormatName,
  { delta }: Simulation,
) {
  const any = anyGradientPremises(problem, output);
  return { ...any, delta: choose(random, ['any', delta] as const) };
}

/** How often bounds said something, and how close errors came to them, over all problems of a test. */
class Tally {
  elements = 0;
  infinite = 0;
  closest = Infinity;
  shareUse = 0;

  add(use: BoundUse): void {
    this.shareUse = Math.max(this.shareUse, use.shareUse);
    this.elements += use.elements;
    this.infinite += use.infinite;
    for (const margin of use.margins) this.closest = Math.min(this.closest, margin);
  }

  /** Fails where most bounds are infinite: nothing was tested then. Figures on demand. */
  expectToSay(what: string, most = 1): void {
    const share = this.infinite / this.elements;
    if (process.env.GRADIENT_FIGURES !== undefined)
      process.stdout.write(
        `${what}: ${this.elements} elements, ${share} without a bound, error within bound / ${this.closest}, rows within ${this.shareUse} of a technique's share\n`,
      );
    expect(share).toBeLessThanOrEqual(most);
  }
}

/** What is tried of the bounds on one problem. */
interface Trial {
  readonly makes: readonly Rounding[];
  /** Whether it is attention that is written out in a framework. */
  readonly isWritten: boolean;
  readonly tally: Tally;
}

function checkOne(seed: number, { makes, isWritten, tally }: Trial): void {
  const random = randomValues(seed);
  // A framework has no sinks.
  const features = oracleFeatures.filter(
    (name) => !(isWritten && name === 'sink') && random.integer(0, 3) === 0,
  );
  const { problem, dout, output, regime } = drawProblem(random, features);
  const drawn = drawSimulation(random, makes);
  const simulation: Simulation = isWritten
    ? {
        ...drawn,
        isWritten,
        delta: 'weights',
        roundsWeights: true,
        scalesFirst: true,
        exponential: 0,
      }
    : drawn;
  const premises = isWritten
    ? eagerGradientPremises(problem, output)
    : drawPremises(random, problem, output, simulation);
  const isGiven = random.integer(0, 1) === 1;
  const uses = newUses();
  judge(problem, dout, premises, simulation, isGiven, uses);
  Object.values(uses).forEach((use) => tally.add(use));
  const { order, delta, roundsWeights, scalesFirst, storesHeads, exponential } = simulation;
  const how = JSON.stringify({
    order,
    delta,
    roundsWeights,
    scalesFirst,
    storesHeads,
    exponential,
  });
  expectSound(
    uses,
    `seed ${seed}, ${regime}, ${features.join(', ')}, premises of ${premises.delta}, ${isGiven ? '' : 'not '}given, ${makes.join(', ')}, ${problem.q.format} as ${output}, ${how}`,
  );
}

describe('bounds of gradients', () => {
  inTurn.each(roundings)('hold for %s alone', (rounding) => {
    const tally = new Tally();
    for (let i = 0; i < Math.ceil(problems / 5); i++)
      checkOne(testSeed + 7919 * i, { makes: [rounding], isWritten: false, tally });
    tally.expectToSay(rounding);
  });

  inTurn('hold for all roundings together', () => {
    const tally = new Tally();
    for (let i = 0; i < problems * 2; i++)
      checkOne(testSeed + 104729 * i, { makes: roundings, isWritten: false, tally });
    tally.expectToSay('all', 0.5);
  });

  inTurn('hold for attention written out in a framework', () => {
    const tally = new Tally();
    for (let i = 0; i < problems; i++)
      checkOne(testSeed + 15485863 * i, { makes: roundings, isWritten: true, tally });
    tally.expectToSay('a framework');
  });

  inTurn('tell how far errors spread, and how far they may', () => {
    const random = randomValues(testSeed);
    // Errors of fp32 are those of sums, of which premises admit more than any of these orders makes.
    const least = { bf16: 0.7, fp16: 0.7, fp32: 0.1 };
    for (const format of ['bf16', 'fp16', 'fp32'] as const) {
      const problem = filledProblem(
        { queries: 70, keys: 80, heads: 2, kvHeads: 2, dim: 8, vDim: 8, format },
        random.normal,
      );
      const dout = drawDout(problem, random.normal);
      const any = anyGradientPremises(problem, format);
      const simulation: Simulation = {
        ...drawSimulation(random, roundings),
        delta: 'stored-output',
        roundsWeights: false,
        scalesFirst: false,
        exponential: 'drawn',
      };
      const premises = {
        ...any,
        weights: 'fp32',
        delta: 'stored-output',
        scaleBeforeRounding: false,
      } as const;
      const uses = newUses();
      judge(problem, dout, premises, simulation, true, uses);
      expectSound(uses, format);
      for (const [name, use] of Object.entries(uses)) {
        const ratio = Math.sqrt(use.squares / use.elements);
        const median = Float64Array.from(use.margins).sort()[use.margins.length >> 1];
        if (process.env.GRADIENT_FIGURES !== undefined)
          process.stdout.write(`${format} ${name}: RMS ${ratio}, bound / error ${median}\n`);
        expect(ratio, `${format} ${name}`).toBeGreaterThan(least[format]);
        expect(ratio, `${format} ${name}`).toBeLessThan(1.3);
        if (format !== 'fp32') expect(median, `${format} ${name}`).toBeLessThan(60);
      }
    }
  });

  it('know roundings that are alike', () => {
    const random = randomValues(testSeed);
    // All weights are 1/83, which bf16 rounds one way, and dO has one sign: by chance they would cancel.
    const problem = filledProblem(
      // All keys have one dV: as many numbers as columns.
      { queries: 90, keys: 83, dim: 4, vDim: 48 },
      { q: () => 0, k: random.normal, v: random.normal },
    );
    const dout = drawDout(problem, () => 1 + random.uniform());
    const simulation: Simulation = {
      ...drawSimulation(random, roundings),
      delta: 'stored-output',
      exponential: 0,
    };
    const uses = newUses();
    judge(problem, dout, anyGradientPremises(problem, 'bf16'), simulation, true, uses);
    expectSound(uses, 'equal weights');
    const ratio = Math.sqrt(uses.dv.squares / uses.dv.elements);
    expect(ratio).toBeGreaterThan(0.7);
    expect(ratio).toBeLessThan(1.3);
  });
});
