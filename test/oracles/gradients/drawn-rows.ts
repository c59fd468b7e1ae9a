import { headGroups } from '../../../oracles/gradients/operands.js';
import { operandRow } from '../../../oracles/attention/operand.js';
import { rulesOf } from '../../../oracles/attention/rules.js';
import { visibleRow } from '../../../oracles/attention/visible-row.js';
import { randomValues } from '../../../properties/problems/values.js';
import { keysOf, problemMask, problemShape, type Problem } from '../../../src/problem/index.js';
import { scaled, testSeed } from '../../setup/effort.js';
import { tensor } from '../../setup/problems.js';
import { featuredProblem, oracleFeatures } from '../attention/features/featured-problems.js';

/** The rows of a drawn problem that see keys, with what the levels take. */
export function* rowsOf(problem: Problem, seed: number) {
  const random = randomValues(seed);
  const shape = problemShape(problem);
  const rules = rulesOf(problem, shape);
  const mask = problemMask(problem, shape);
  const whole = [...problem.q.shape.slice(0, -1), shape.vDim];
  const dout = tensor('fp32', whole, random.normal);
  for (const group of headGroups(problem, dout, shape))
    for (const head of group.heads)
      for (let i = 0; i < shape.queries; i++) {
        const operands = group.operandsOf(head);
        const visible = Int32Array.from(keysOf(mask.ranges(head, i)));
        if (visible.length === 0) continue;
        const row = visibleRow(operands, i, rules, visible, new Int8Array(visible.length));
        const values = operandRow(operands.dout, i).slice();
        yield { row, rules, dout: { values, norm: operands.dout.norm[i] } };
      }
}

/** A row with the rules of its problem and its dO. */
export type DrawnRow = ReturnType<typeof rowsOf> extends Generator<infer T> ? T : never;

/** Runs `judge` on rows of problems with random features, of those given. */
export function forEachRow(
  judge: (row: DrawnRow) => void,
  {
    problems = 6,
    of = oracleFeatures,
  }: {
    problems?: number;
    of?: readonly (typeof oracleFeatures)[number][];
  } = {},
) {
  for (let run = 0; run < scaled(problems); run++) {
    const random = randomValues(testSeed + 31 * run);
    const features = of.filter(() => random.integer(0, 2) === 0);
    const sizes = { queries: 2, keys: 6, heads: 2, kvHeads: 1, dim: 3, vDim: 2 };
    const problem = featuredProblem(random, features, sizes);
    for (const row of rowsOf(problem, run)) judge(row);
  }
}
