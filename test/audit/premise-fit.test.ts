import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { decodeOutputs, type PremiseDeclaration } from '../../src/audit/index.js';
import { fitPremise } from '../../src/audit/premises/premise-fit.js';
import { formats, round } from '../../src/formats/index.js';
import { problemShape } from '../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../setup/problems.js';
import { encode } from './damage.js';
import { bellShaped } from './gradients/gradient-case.js';

const [heads, queries, keys, dim] = [2, 64, 96, 16] as const;
const problem = filledProblem({ heads, queries, keys, dim }, bellShaped(17));
const reference = attentionOracle(problem);
const { out, lse } = reference.quantities;
const { bf16 } = formats;

/** x without the bits that bf16 cannot hold. */
const truncated = (x: number) => {
  const nearest = round(bf16, x);
  return Math.abs(nearest) > Math.abs(x) ? round(bf16, x * (1 - 2 ** -8)) : nearest;
};

/** The flags of what an output is told, where an audit of it passes what `passes` says. */
function told(
  element: (x: number) => number,
  passes: (declared: PremiseDeclaration) => boolean = ({ outputRounding }) =>
    outputRounding === 'truncated',
): string | null {
  const outputs = decodeOutputs(
    {
      out: encode(out.values.map(element), 'bf16', [1, heads, queries, dim]),
      lse: encode(lse.values, 'fp32', [1, heads, queries]),
    },
    problemShape(problem),
  );
  const request = { problem, reference, outputs, onlyLse: false, cause: null, passes };
  return fitPremise(request)?.flags ?? null;
}

describe('a premise that an output would pass by', () => {
  it('is told of a kernel of it', () => {
    expect(told(truncated)).toContain('outputRounding=truncated');
  });

  it('is not told where the audit of it does not pass', () => {
    expect(told(truncated, () => false)).toBeNull();
  });

  it('is not told of errors as large that do not follow from it', () => {
    const random = pseudorandom(3);
    const either = (x: number) =>
      random() < 0 ? truncated(x) : round(bf16, truncated(x) * (1 + 2 ** -7));
    expect(told(either)).toBeNull();
  });

  it('is not told of errors that follow from it and are larger', () => {
    expect(told((x) => truncated(x * (1 - 2 ** -7)))).toBeNull();
  });
});
