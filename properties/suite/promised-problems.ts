import type { Law, ProblemPromises } from '../laws/index.js';
import { sizeNames } from '../problems/index.js';
import type { ProblemLimits, ResolvedPromises } from './promises.js';

/** Ranges within those of both. */
function narrowerSizes(
  promised: ProblemPromises['sizes'],
  limits: NonNullable<ProblemLimits['sizes']>,
): ProblemPromises['sizes'] {
  const entries = sizeNames.flatMap((name) => {
    const ranges = [promised[name], limits[name]].filter((range) => range !== undefined);
    if (ranges.length === 0) return [];
    const min = Math.max(...ranges.map((range) => range.min ?? 0));
    const max = Math.min(...ranges.map((range) => range.max ?? Infinity));
    return [[name, { ...(min > 0 ? { min } : {}), ...(max < Infinity ? { max } : {}) }] as const];
  });
  return Object.fromEntries(entries);
}

/** The promises that hold of a law's problems: of gradients those that the backward pass takes. */
export function promisesOf(
  { ofGradients = false }: Pick<Law, 'ofGradients'>,
  promises: ResolvedPromises,
): ResolvedPromises {
  if (!ofGradients) return promises;
  const { formats, features, sizes = {}, multiples } = promises.gradientProblems;
  return {
    ...promises,
    formats: promises.formats.filter((name) => formats?.includes(name) ?? true),
    features: promises.features.filter((kind) => features?.includes(kind) ?? true),
    sizes: narrowerSizes(promises.sizes, sizes),
    multiples: { ...promises.multiples, ...multiples },
  };
}
