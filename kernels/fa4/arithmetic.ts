import { type Problem, problemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { KernelArithmetic } from '../arithmetic.js';
import { recipeArithmetic } from '../online-softmax/arithmetic.js';
import { exp2Polynomial, polynomialErrors } from '../online-softmax/exp2-polynomial.js';
import type { PremiseDeclaration } from '../promises.js';
import { fa4Configuration, type Fa4Configuration } from './configuration.js';
import { fa4Recipe, tileSetting } from './recipe.js';
import { exp2ApproxFtz } from '../../src/hardware/index.js';
import type { KernelExponential } from '../kernel-model.js';
import { fragmentColumns, polynomialShare } from './exp2-tuning.js';

/**
 * The arithmetic of FlashAttention-4's forward in the configuration that it would run the problem in,
 * with the choices of `overrides`. It follows from the recipe.
 * @throws RequestError for a problem that the kernel does not take and a configuration out of range.
 */
export function fa4Arithmetic(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
): KernelArithmetic {
  const configuration = fa4Configuration(problem, problemShape(problem), overrides);
  const { rescaleThreshold, architecture } = configuration;
  if (configuration.splits > 1)
    throw new RequestError(
      `splits is ${configuration.splits}; there are no bounds for a combine yet: leave it at 1`,
    );
  for (const [name, value] of Object.entries(configuration.descale))
    if (value !== 1)
      throw new RequestError(
        `descale.${name} is ${value}; bounds are for the inputs as they are: leave it at 1`,
      );
  return recipeArithmetic(
    fa4Recipe(tileSetting(problem, configuration), problem.scale),
    `fa4 (${architecture}, rescale threshold ${rescaleThreshold})`,
  );
}

/** Declarations of the model beside its arithmetic: an exponential less accurate than any kernel's may be. */
export function fa4Premises(settings: ReadonlyMap<string, string>): PremiseDeclaration {
  const degree = settings.get('exp2.degree') ?? '3';
  const known = Object.entries(polynomialErrors).find(([name]) => name === degree);
  // Degrees from 3 on are as accurate as any kernel's.
  return known === undefined || known[1].largest <= 2 ** -13.4
    ? {}
    : { exponential: known[1].largest };
}

/** A function of fp32 bits as one of fp32 numbers. */
function float32Function(ofBits: (bits: number) => number): (x: number) => number {
  const float = new Float32Array(1);
  const word = new Uint32Array(float.buffer);
  return (x) => {
    float[0] = x;
    word[0] = ofBits(word[0]);
    return float[0];
  };
}

/** The ways in which a configuration computes 2^x; the polynomial, if it has one, first. */
export function fa4Exponentials({ exp2, blockKeys }: Fa4Configuration): KernelExponential[] {
  const share = polynomialShare(exp2, blockKeys / fragmentColumns);
  const unit: KernelExponential = {
    name: 'ex2.approx.ftz.f32',
    place: 'The special function unit',
    share: 1 - share,
    exp2: float32Function(exp2ApproxFtz),
  };
  if (share === 0) return [unit];
  const polynomial: KernelExponential = {
    name: `Polynomial of degree ${exp2.degree}`,
    place: 'In software',
    share,
    exp2: (x) => exp2Polynomial(x, exp2.degree),
  };
  return [polynomial, unit];
}
