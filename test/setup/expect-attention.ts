import { expect } from 'vitest';
import { judgeOutputs, type AuditOptions, type KernelOutputs } from '../../src/audit/index.js';
import { decodeTensor } from '../../src/formats/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';

/** The most that an operation in fp32 may lose where its result is subnormal. */
const loss32 = 2 ** -126;

/**
 * Whether V is so small that underflow may take all that is made of it: a sum over keys loses up to `loss` with each, and a mean of
 * numbers that are hundreds of times larger is larger than that.
 */
export function mayVanish(problem: Problem, loss = loss32): boolean {
  const most = problemShape(problem).keys * 2 ** 8 * loss;
  return decodeTensor(problem.v).every((x) => !(Math.abs(x) >= most));
}

interface ExpectedAttention extends Pick<AuditOptions, 'premises'> {
  /** The most that one of the kernel's operations on sums may lose to underflow; default: that of fp32. */
  readonly loss?: number | undefined;
  /** The problem, for messages. */
  readonly name?: string;
}

/**
 * Expects of a correct kernel's outputs that nothing is found wrong with them, and that they pass; where underflow may take all of
 * the output, they need not be judged.
 */
export function expectAttention(
  problem: Problem,
  outputs: KernelOutputs,
  { premises = {}, loss = loss32, name = '' }: ExpectedAttention = {},
): void {
  const { verdict } = judgeOutputs(problem, outputs, { premises, diagnose: false });
  const { findings, sentence, judged, pass } = verdict;
  const said = [name, sentence, ...findings.map(({ statement }) => statement)].join('\n');
  expect(findings.length, said).toBe(0);
  if (judged) expect(pass, said).toBe(true);
  else expect(mayVanish(problem, loss), said).toBe(true);
}
