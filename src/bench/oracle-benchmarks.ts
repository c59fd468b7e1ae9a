import { attentionGradients, attentionOracle, type Accuracy } from '../../oracles/index.js';
import { auditAccuracy } from '../audit/index.js';
import type { FormatName } from '../formats/index.js';
import { countKeys, problemMask, problemShape, type Problem } from '../problem/index.js';
import { rateOf, type Benchmark } from './benchmark.js';
import { normalProblem, type ProblemSize } from './normal-problem.js';

const fourHeads = { heads: 4, seqlen: 1024, dim: 128 };
const oneHead = { ...fourHeads, heads: 1 };
const quickSize = { heads: 1, seqlen: 64, dim: 16 };

interface OracleCase {
  readonly name: string;
  readonly format: FormatName;
  readonly settings?: Partial<Pick<Problem, 'causal' | 'softcap'>>;
  /** Default: the oracle's own, 1/1024 ulp of fp32. */
  readonly accuracy?: Accuracy;
  readonly target?: number;
  /** Default: 4 heads, [4, 1024, 128]. */
  readonly size?: ProblemSize;
}

/** Multiply-adds per second that keep an audit a matter of seconds. */
const target = 4e8;

const cases: readonly OracleCase[] = [
  { name: 'bf16', format: 'bf16', accuracy: auditAccuracy('bf16'), target },
  { name: 'fp16', format: 'fp16', accuracy: auditAccuracy('fp16'), target },
  {
    name: 'bf16, causal',
    format: 'bf16',
    settings: { causal: true },
    accuracy: auditAccuracy('bf16'),
    target,
  },
  {
    name: 'bf16, softcap 30',
    format: 'bf16',
    settings: { softcap: 30 },
    accuracy: auditAccuracy('bf16'),
    target,
  },
  { name: 'fp32, to 1/1024 ulp of fp32', format: 'fp32', size: oneHead },
];

/** Number of pairs of a query and a key that it sees, over all heads. */
function visiblePairs(problem: Problem): number {
  const shape = problemShape(problem);
  const mask = problemMask(problem, shape);
  let pairs = 0;
  for (let head = 0; head < shape.batch * shape.heads; head++)
    for (let query = 0; query < shape.queries; query++)
      pairs += countKeys(mask.ranges(head, query));
  return pairs;
}

/** Multiply-adds of QKᵀ and PV over the visible keys: 2 · dim per query and key. */
export function multiplyAdds(problem: Problem): number {
  const { qkDim, vDim } = problemShape(problem);
  return visiblePairs(problem) * (qkDim + vDim);
}

/** The multiply-adds of the five products of the gradients: QKᵀ, dO Vᵀ, Pᵀ dO, dSᵀ Q and dS K. */
export function gradientMultiplyAdds(problem: Problem): number {
  const { qkDim, vDim } = problemShape(problem);
  return visiblePairs(problem) * (3 * qkDim + 2 * vDim);
}

/** The oracle of gradients on one thread, standard normal inputs, one head; dO has the values of V. */
const gradientBenchmark: Benchmark = {
  quantities: [
    {
      name: 'oracle of gradients: bf16',
      unit: 'multiply-adds/s',
      better: 'higher',
      target: 3e8,
    },
  ],
  prepare: (quick) => {
    const problem = normalProblem('bf16', quick ? quickSize : oneHead);
    return rateOf(gradientMultiplyAdds(problem), () => {
      attentionGradients(problem, problem.v);
    });
  },
};

/** The attention oracle on one thread, standard normal inputs. */
const forwardBenchmarks: readonly Benchmark[] = cases.map(
  ({ name, format, settings, accuracy, target, size = fourHeads }) => ({
    quantities: [
      {
        name: `oracle: ${name}`,
        unit: 'multiply-adds/s',
        better: 'higher',
        ...(target === undefined ? {} : { target }),
      },
    ],
    prepare: (quick) => {
      const problem = normalProblem(format, quick ? quickSize : size, settings);
      const options = accuracy === undefined ? {} : { accuracy };
      return rateOf(multiplyAdds(problem), () => {
        attentionOracle(problem, options);
      });
    },
  }),
);

/** The attention oracle and that of its gradients, each on one thread. */
export const oracleBenchmarks: readonly Benchmark[] = [...forwardBenchmarks, gradientBenchmark];
