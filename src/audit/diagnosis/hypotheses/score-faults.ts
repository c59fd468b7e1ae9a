import type { Problem } from '../../../problem/index.js';
import type { HypothesisFamily } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

/** A wrong way to make a score of a dot product. */
interface ScoreFault {
  readonly id: string;
  readonly technique: string;
  readonly statement: string;
  /** The faulty law, or null when the problem does not allow the fault. */
  readonly law: (problem: Problem, dims: Dims) => ((dot: number) => number) | null;
}

interface Dims {
  readonly qkDim: number;
  readonly vDim: number;
}

const capped = (x: number, softcap: number | null) =>
  softcap === null ? x : softcap * Math.tanh(x / softcap);

/** The score with another factor in place of the scale. */
function rescaled(factor: (problem: Problem, dims: Dims) => number): ScoreFault['law'] {
  return (problem, dims) => {
    const scale = factor(problem, dims);
    if (scale === problem.scale || !Number.isFinite(scale)) return null;
    return (dot) => capped(scale * dot, problem.softcap);
  };
}

/** The score without its cap in one of the ways that one can go wrong. */
function miscapped(
  law: (dot: number, scale: number, softcap: number) => number,
): ScoreFault['law'] {
  return ({ scale, softcap }) => (softcap === null ? null : (dot) => law(dot, scale, softcap));
}

const scoreFaults: readonly ScoreFault[] = [
  {
    id: 'scale-twice',
    technique: 'scale-subtract',
    statement: 'the scale is applied twice',
    law: rescaled(({ scale }) => scale * scale),
  },
  {
    id: 'scale-missing',
    technique: 'scale-subtract',
    statement: 'the scale is not applied',
    law: rescaled(() => 1),
  },
  {
    id: 'scale-by-dimension',
    technique: 'scale-subtract',
    statement: 'the scale is 1/d, not the one of the problem',
    law: rescaled((_, { qkDim }) => 1 / qkDim),
  },
  {
    id: 'scale-by-root-dimension',
    technique: 'scale-subtract',
    statement: 'the scale is the default 1/√d, not the one of the problem',
    law: rescaled((_, { qkDim }) => 1 / Math.sqrt(qkDim)),
  },
  {
    id: 'scale-by-value-dimension',
    technique: 'scale-subtract',
    statement: "the scale is 1/√d of V's dimension, not the one of the problem",
    law: rescaled((_, { qkDim, vDim }) => (qkDim === vDim ? NaN : 1 / Math.sqrt(vDim))),
  },
  {
    id: 'scale-sign',
    technique: 'scale-subtract',
    statement: "the scale's sign is lost",
    law: rescaled(({ scale }) => -scale),
  },
  {
    id: 'log2e-missing',
    technique: 'scale-subtract',
    statement: 'the exponential is to base 2 without log2 e in the scale',
    law: rescaled(({ scale }) => scale * Math.LN2),
  },
  {
    id: 'log2e-twice',
    technique: 'scale-subtract',
    statement: 'log2 e is in the scale twice',
    law: rescaled(({ scale }) => scale * Math.LOG2E),
  },
  {
    id: 'softcap-ignored',
    technique: 'scale-subtract',
    statement: 'the softcap is ignored',
    law: miscapped((dot, scale) => scale * dot),
  },
  {
    id: 'softcap-before-scale',
    technique: 'scale-subtract',
    statement: 'the softcap is applied to the unscaled scores',
    law: miscapped((dot, scale, softcap) => scale * capped(dot, softcap)),
  },
  {
    id: 'softcap-not-multiplied',
    technique: 'scale-subtract',
    statement: 'the tanh of the softcap is not multiplied by the cap',
    law: miscapped((dot, scale, softcap) => Math.tanh((scale * dot) / softcap)),
  },
  {
    id: 'softcap-not-divided',
    technique: 'scale-subtract',
    statement: 'the scores are not divided by the softcap before its tanh',
    law: miscapped((dot, scale, softcap) => softcap * Math.tanh(scale * dot)),
  },
];

/** Faults in the way from a dot product to its score. */
export const scoreHypotheses: HypothesisFamily = function* ({ reader, shape }) {
  const { problem } = reader;
  for (const { id, technique, statement, law } of scoreFaults) {
    const score = law(problem, shape);
    if (score === null) continue;
    yield {
      id,
      technique,
      statement,
      predict: (row) => {
        const dots = reader.dots(row.row, row.kv);
        let growth = 1;
        const scores = reader.maskedScores(row.row, row.ranges, (key) => {
          const correct = reader.score(dots[key], row.row, key);
          // Bias and ALiBi, which are added afterwards.
          const added = correct - capped(problem.scale * dots[key], problem.softcap);
          const faulty = score(dots[key]) + added;
          growth = Math.max(growth, Math.abs(faulty / correct) || 1);
          return faulty;
        });
        return predictWeighted(row, softmaxRow(scores, reader.valuesOf(row.row, row.kv), growth));
      },
    };
  }
};
