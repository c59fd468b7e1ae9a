import { describe, expect, it } from 'vitest';
import { randomValues, type RandomValues } from '../../../properties/problems/values.js';
import {
  judgeOutputs,
  type KernelOutputs,
  type PremiseDeclaration,
} from '../../../src/audit/index.js';
import { formats, round, type FormatName } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { featureKernel } from '../../kernels/features/index.js';
import { fromEnvironment, scaled, testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';
import { encode } from '../damage.js';

const inTurn = turns(import.meta.url);

const problems = fromEnvironment('DROPPED_PROBLEMS', scaled(20));

/** The problem with dropout: `kept` has 1 for weights that stay, [queries, keys]. */
function dropped(problem: Problem, kept: readonly number[], probability: number): Problem {
  const { queries, keys } = problemShape(problem);
  const shape = [1, 1, queries, keys];
  return { ...problem, dropout: { kept: { shape, data: Uint8Array.from(kept) }, probability } };
}

/** The same with a sink, which the LSE has. */
function withSink(problem: Problem, logit: number): Problem {
  return { ...problem, sink: { logits: encode(Float64Array.of(logit), 'fp32', [1]), inLse: true } };
}

/** Rows whose heavy keys dropout leaves out: O is made of weights that are subnormal as P has them, or nearly. */
function lightRows(format: FormatName, random: RandomValues): Problem {
  const [queries, keys] = [random.integer(1, 4), random.integer(2, 70)];
  const vDim = random.integer(1, 3);
  const depth = 20 * random.uniform();
  const sign = random.sign();
  const isHeavy = Array.from({ length: keys }, (_, key) => key === 0 || random.uniform() < 0.2);
  const numbers = (length: number, number: (at: number) => number) =>
    Array.from({ length }, (_, at) => number(at));
  const below = () => -depth * (0.7 + random.uniform() / 2);
  const rows = {
    q: numbers(queries, () => 1 + random.uniform()).map((x) => [x]),
    k: numbers(keys, (key) => (isHeavy[key] ? 0 : below())).map((x) => [x]),
    v: isHeavy.map(() => numbers(vDim, () => sign * (0.5 + random.uniform()))),
  };
  const kept = numbers(queries * keys, (at) =>
    isHeavy[at % keys] || random.uniform() < 0.5 ? 0 : 1,
  );
  const probability = [0.1, 0.2, 0.5, 0.9][random.integer(0, 3)];
  const problem = dropped(singleHead(format, rows), kept, probability);
  if (random.uniform() < 0.7) return problem;
  return withSink(problem, random.normal());
}

/** What an audit finds. */
function findingsOf(
  problem: Problem,
  outputs: KernelOutputs,
  premises: PremiseDeclaration = {},
): string[] {
  const { verdict } = judgeOutputs(problem, outputs, { premises, diagnose: false });
  return verdict.findings.map(({ statement }) => statement);
}

/** What a plain kernel gives. */
function outputsOf(problem: Problem, blockKeys: number, splits: number): KernelOutputs {
  return featureKernel({ blockKeys, splits })(problem) as KernelOutputs;
}

describe('no test is alarmed where dropout keeps small weights of P in 8 bits', () => {
  const rows = { q: [[1]], k: [[0.375], [-3]], v: [[0, 0], [1, 1]] }; // prettier-ignore
  it.each([
    ['vanishes', dropped(scoredKeys('e4m3', [0, 16], [1, 0]), [1, 0], 0.9)],
    ['is rounded', withSink(dropped(scoredKeys('e5m2', [2, -2], [0, 1]), [0, 1], 0.9), 1.12)],
    ['is rounded, in two columns', dropped(singleHead('e5m2', rows), [0, 1], 0.5)],
  ])('one that %s', (_, problem) => {
    for (const splits of [1, 3])
      expect(findingsOf(problem, outputsOf(problem, 32, splits))).toEqual([]);
  });

  inTurn.each(['e4m3', 'e5m2'] as const)('in random rows, %s', (format) => {
    const random = randomValues(testSeed + 41);
    for (let i = 0; i < problems; i++) {
      const problem = lightRows(format, random);
      const outputs = outputsOf(problem, [16, 32, 64][i % 3], 1 + (i % 3));
      expect(findingsOf(problem, outputs), `problem ${i}`).toEqual([]);
    }
  });
});

describe('weights that are rounded before and after the factor of dropout', () => {
  // Equal weights of 1.49 and, times the factor, 1.5 of P's smallest number: both times the fraction is lost.
  const [keys, probability] = [344, 0.333];
  const equal = scoredKeys('e4m3', Array<number>(keys).fill(0), Array<number>(keys).fill(1));
  const problem = dropped(equal, Array<number>(keys).fill(1), probability);
  const once = round(formats.e4m3, 1 / keys);
  const twice = round(formats.e4m3, once / (1 - probability));
  const outputs = {
    out: encode(Float64Array.of(keys * twice), 'fp32', [1, 1, 1, 1]),
    lse: encode(Float64Array.of(Math.log(keys)), 'fp32', [1, 1, 1]),
  };

  it('pass where scores and weights are written in a format, as frameworks do', () => {
    expect(findingsOf(problem, outputs, { scores: 'input', weightScale: 1 })).toEqual([]);
  });

  it('fail where they are rounded once', () => {
    expect(findingsOf(problem, outputs, { weightScale: 1 })).not.toEqual([]);
  });
});
