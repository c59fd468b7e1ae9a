import { problemShape, type Problem } from '../../src/problem/index.js';
import { describeDifference, firstDifference } from './compare-runs.js';
import { UnsupportedProblem, type ProblemPromises } from './kernel-under-test.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import { isPromised } from './promised-problem.js';
import { arrangeTensors, copyProblem, indices } from './transform-problem.js';
import { alignedUp, featuresOf } from '../problems/index.js';

/** Another configuration of a problem, that one compiled kernel might be taken for. */
interface OtherConfiguration {
  readonly words: string;
  readonly change: (problem: Problem, promises: ProblemPromises) => Problem | null;
}

/** Head dimensions of another problem: the next in the list, or half of it and double of it. */
function otherDims(problem: Problem, { dims }: ProblemPromises): Problem | null {
  const { qkDim, vDim } = problemShape(problem);
  if (dims !== null && dims.length < 2) return null;
  const another = dims?.find((dim) => dim !== qkDim);
  const columns = (from: number, to: number) => indices(to).map((column) => column % from);
  const [ofQ, ofV] = another === undefined ? [2 * qkDim, 2 * vDim] : [another, another];
  return withColumns(problem, columns(qkDim, ofQ), columns(vDim, ofV));
}

/** The problem with these columns of Q and K, and of V. */
function withColumns(
  problem: Problem,
  ofQueries: readonly number[],
  ofValues: readonly number[],
): Problem | null {
  if ([problem.q, problem.k, problem.v].some(({ scales }) => scales !== undefined)) return null;
  const picked = (tensor: Problem['q'], columns: readonly number[]) => {
    const width = tensor.shape.at(-1) ?? 0;
    const rows = tensor.data.length / Math.max(width, 1);
    const data = tensor.data.slice(0, 0);
    const grown = new (data.constructor as new (length: number) => typeof data)(
      rows * columns.length,
    );
    for (let row = 0; row < rows; row++)
      columns.forEach((column, at) => {
        grown[row * columns.length + at] = tensor.data[row * width + column];
      });
    return { ...tensor, shape: [...tensor.shape.slice(0, -1), columns.length], data: grown };
  };
  return {
    ...problem,
    q: picked(problem.q, ofQueries),
    k: picked(problem.k, ofQueries),
    v: picked(problem.v, ofValues),
  };
}

/** The problem without its features beside Q, K and V, and without the form in which it was posed. */
function plain(problem: Problem): Problem {
  return arrangeTensors(problem, {});
}

const configurations: readonly OtherConfiguration[] = [
  {
    words: 'of the other causality',
    change: (problem) => ({ ...problem, causal: !problem.causal }),
  },
  {
    words: 'with other head dimensions',
    change: otherDims,
  },
  {
    words: 'with twice the query heads',
    change: (problem) => {
      const { heads, groupSize } = problemShape(problem);
      return arrangeTensors(problem, {
        heads: indices(2 * heads).map((head) => {
          const kvHead = Math.floor(head / (2 * groupSize));
          return kvHead * groupSize + (head % groupSize);
        }),
      });
    },
  },
  {
    words: 'with another scale and a window',
    change: (problem, { window, scales }) => ({
      ...problem,
      scale: scales.includes('odd') ? 2 * problem.scale : problem.scale,
      window: window ? { left: 3, right: 0 } : null,
    }),
  },
  {
    words: 'of one query and more keys',
    change: (problem, { multiples }) => {
      const { queries, keys } = problemShape(problem);
      const more = alignedUp(keys + 1, multiples.keys);
      if (queries === 0 || keys === 0) return null;
      return arrangeTensors(problem, {
        queries: indices(multiples.queries ?? 1).map((query) => query % queries),
        keys: indices(more).map((key) => key % keys),
      });
    },
  },
  {
    words: 'without its mask, bias and sequences',
    change: (problem) => (Object.keys(featuresOf(problem)).length === 0 ? null : plain(problem)),
  },
];

/**
 * A problem, one of another configuration, and the problem again: the bits of the first run, and the other within
 * its worst-case bound, whichever came first in the process.
 */
export const configurationsByTurns: Law = {
  statement: 'A problem of another configuration in between changes nothing',
  reason:
    'Two configurations must not share one compiled kernel, one descriptor or one buffer; which came first in the process is no part of a problem.',
  strengths: ['bits'],
  usual: 'bits',
  choices: configurations.length,
  violation: async ({ problem, choice }, { run, judge, promises }) => {
    const { change, words } = configurations[choice];
    const other = change(plainOrSame(problem, choice), promises);
    if (other === null || !isPromised(other, promises))
      throw new NotApplicable('the other configuration is not promised');
    const usual = await run(copyProblem(problem));
    let between: KernelRun;
    try {
      between = await run(other);
    } catch (error) {
      if (error instanceof UnsupportedProblem)
        throw new NotApplicable('the kernel declines the other configuration');
      throw error;
    }
    const difference = firstDifference(usual, await run(copyProblem(problem)));
    if (difference !== null)
      return describeDifference(difference, 'at first', `again, after a problem ${words}`);
    const { verdict } = judge(between);
    const [found] = verdict.findings.filter(({ isWorstCase }) => isWorstCase);
    return found === undefined ? null : `of a problem ${words}, in between, ${found.statement}`;
  },
};

/** Features do not fit other numbers of heads and keys: such configurations are changed without them. */
function plainOrSame(problem: Problem, choice: number): Problem {
  return choice === 2 || choice === 4 ? plain(problem) : problem;
}
