import { problemShape, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { KernelArithmetic } from '../arithmetic.js';
import { recipeArithmetic } from '../online-softmax/arithmetic.js';
import { polynomialErrors } from '../online-softmax/exp2-polynomial.js';
import type { PremiseDeclaration } from '../premise-declaration.js';
import { exponentScale, fa4Configuration, type Fa4Configuration } from './configuration.js';
import type { Fa4Format } from './formats.js';
import { fa4Recipe } from './recipe.js';

/**
 * The arithmetic of FlashAttention-4's forward in the configuration that it would run the problem in,
 * with what `overrides` fixes. It follows from the recipe.
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
  // Which formats there are was checked with the configuration.
  const format = problem.q.format as Fa4Format;
  const scale = exponentScale(problem.scale, configuration);
  return recipeArithmetic(
    fa4Recipe({ configuration, format, scale }, problem.scale),
    `fa4 (${architecture}, rescale threshold ${rescaleThreshold})`,
  );
}

/** What the model declares beside its arithmetic: an exponential that is worse than any kernel's may be. */
export function fa4Premises(settings: ReadonlyMap<string, string>): PremiseDeclaration {
  const degree = settings.get('exp2.degree') ?? '3';
  const known = Object.entries(polynomialErrors).find(([name]) => name === degree);
  // Degrees from 3 on are as good as any kernel's.
  return known === undefined || known[1].largest <= 2 ** -13.4
    ? {}
    : { exponential: known[1].largest };
}
