import {
  featureNames,
  problemFeatures,
  type FeatureName,
  type Problem,
} from '../src/problem/index.js';
import { RequestError } from '../src/request-error.js';
import type { KernelModel } from './kernel-model.js';

const withoutArticle = (feature: FeatureName): string => featureNames[feature].replace(/^an? /, '');

/**
 * Refuses a problem with features that a kernel does not take: left out of its arithmetic, they would make its
 * output that of another problem.
 * @param kernel name of the kernel, as in `fa1`
 * @throws RequestError that names the features, and those that the kernel takes
 */
export function checkFeatures(
  kernel: string,
  taken: readonly FeatureName[],
  problem: Problem,
): void {
  const refused = problemFeatures(problem).filter((feature) => !taken.includes(feature));
  if (refused.length === 0) return;
  const others =
    taken.length === 0
      ? ''
      : `; beside causal and window masks it takes ${taken.map((name) => featureNames[name]).join(', ')}`;
  throw new RequestError(
    `${kernel} takes no ${refused.map(withoutArticle).join(' and no ')}${others}`,
  );
}

/**
 * The entry of a kernel model that refuses problems with features beside its `features`, in every use. A
 * sample of rows has the arithmetic of the whole problem, so that bounds accept it for every kernel.
 */
export function kernelModel(entry: KernelModel): KernelModel {
  const { name, features, program, backward } = entry;
  const ofProblem =
    <Rest extends readonly unknown[], Result>(
      compute: (problem: Problem, ...rest: Rest) => Result,
      taken: readonly FeatureName[] = features,
      kernel = name,
    ): ((problem: Problem, ...rest: Rest) => Result) =>
    (problem, ...rest) => {
      checkFeatures(kernel, taken, problem);
      return compute(problem, ...rest);
    };
  const orRows: readonly FeatureName[] = [...features, 'rows'];
  return {
    ...entry,
    prepare: ofProblem(entry.prepare, [...features, ...(entry.emulated ?? [])]),
    attribute: ofProblem(entry.attribute),
    arithmetic: ofProblem(entry.arithmetic, orRows),
    exponentials: ofProblem(entry.exponentials, orRows),
    program:
      program === null
        ? null
        : async () => {
            const loaded = await program();
            const prepare = ofProblem(loaded.prepare, loaded.features, `${name} on the machine`);
            return { ...loaded, prepare };
          },
    backward:
      backward === null
        ? null
        : {
            ...backward,
            prepare: ofProblem(backward.prepare, backward.features, `${name}'s backward`),
            arithmetic: ofProblem(backward.arithmetic, backward.features, `${name}'s backward`),
          },
  };
}
