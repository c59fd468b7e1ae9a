import {
  keptWeights,
  scoreLaw,
  type KeptWeights,
  type Problem,
  type ProblemShape,
  type ScoreLaw,
} from '../../src/problem/index.js';
import { scoreConstants, type ScoreConstants } from './scores.js';
import { headSinks, type Sink } from './sink.js';

/** The rules by which O follows from the products q·k, alike in all rows of a problem. */
export interface Rules {
  readonly law: ScoreLaw;
  readonly constants: ScoreConstants;
  /** The kept weights; null without dropout. */
  readonly kept: KeptWeights | null;
  /** The sink of a head, which is counted over [batch, heads]; null for none. */
  readonly sinkOf: (head: number) => Sink | null;
}

/** The rules of a problem. */
export function rulesOf(problem: Problem, shape: ProblemShape): Rules {
  const law = scoreLaw(problem, shape);
  const sinks = headSinks(problem);
  return {
    law,
    constants: scoreConstants(law),
    kept: keptWeights(problem, shape),
    sinkOf: (head) => sinks?.[head % shape.heads] ?? null,
  };
}
