import { findKernelModel } from '../../kernels/index.js';
import { checkKernel, modelPromises, planCheck } from '../../properties/index.js';
import type { Benchmark } from './benchmark.js';

/** Kernel models whose checks are measured: one that does little itself, and one of many laws. */
const models = ['naive-input', 'fa4'] as const;

const problems = 24;
const quickProblems = 1;
const seed = 1;

/** A check of a kernel model on one thread: the problems of each law in a second, with the kernel's own time. */
function lawBenchmark(model: string): Benchmark {
  const { kernel, promises } = modelPromises(findKernelModel(model), new Map());
  const laws = planCheck(promises, {})
    .laws.filter(({ skipped }) => skipped === null)
    .map(({ id }) => id);
  return {
    quantities: laws.map((id) => ({
      name: `laws of ${model}: ${id}`,
      unit: 'problems/s',
      better: 'higher',
    })),
    // All laws take turns, so that each law's first problem meets code that others have had compiled, as in any check.
    runs: 1,
    isWarm: true,
    prepare: (quick) => ({
      measure: async () => {
        const runs = quick ? quickProblems : problems;
        const { laws: results } = await checkKernel(kernel, promises, { laws, runs, seed });
        return laws.map((id) => {
          const { runs: turns, seconds } = results.find((result) => result.id === id)!;
          return turns / seconds;
        });
      },
    }),
  };
}

/** How many problems of each law a check tries in a second; they take minutes of their own. */
export function lawBenchmarks(): readonly Benchmark[] {
  return models.map(lawBenchmark);
}
