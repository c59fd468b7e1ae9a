import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { decodeOutputs, type PremiseDeclaration } from '../../src/audit/index.js';
import { createDeclaredRows } from '../../src/audit/premises/declared-row.js';
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

/** The flags of what a plain kernel of a declaration is told, where an audit of that declaration alone would pass. */
function toldOf(declared: PremiseDeclaration, of: typeof problem): string | null {
  const shape = problemShape(of);
  const { format } = of.q;
  const rowOf = createDeclaredRows(of, shape, format, declared);
  const rows = Array.from({ length: heads * queries }, (_, row) => rowOf(row));
  const values = Float64Array.from(rows.flatMap((row) => [...row.out]));
  const sums = Float64Array.from(rows, (row) => row.lse);
  const outputs = decodeOutputs(
    {
      out: encode(values, format, [1, heads, queries, dim]),
      lse: encode(sums, 'fp32', [1, heads, queries]),
    },
    shape,
  );
  const passes = (other: PremiseDeclaration) => JSON.stringify(other) === JSON.stringify(declared);
  const exact = attentionOracle(of);
  const request = { problem: of, reference: exact, outputs, onlyLse: false, cause: null, passes };
  return fitPremise(request)?.flags ?? null;
}

describe('every premise that shows in an output', () => {
  const declarations: readonly PremiseDeclaration[] = [
    { outputRounding: 'truncated' },
    { outputRounding: 'stochastic' },
    { scale: 'q-before-rounding' },
    { scale: 'root-of-both' },
    { scores: 'bf16' },
    { scores: 'bf16', scale: 'root-of-both' },
    { pvAccumulator: 'bf16' },
    { qkAccumulator: 'bf16' },
  ];
  it.each(declarations)('is told of a plain kernel of it: %j', (declared) => {
    const large = filledProblem({ heads, queries, keys, dim }, bellShaped(17), { scale: 0.6 });
    const flags = toldOf(declared, large);
    expect(flags).not.toBeNull();
    for (const [name, value] of Object.entries(declared))
      expect(flags).toContain(`${name}=${String(value)}`);
  });

  it('is told of scores in fp16, of Q and K rounded after the root of the scale', () => {
    const large = filledProblem({ heads, queries, keys, dim, format: 'fp16' }, bellShaped(17), {
      scale: 2.6,
    });
    const declared = { scores: 'fp16', scale: 'root-of-both' } as const;
    const flags = toldOf(declared, large);
    expect(flags).toContain('scores=fp16');
    expect(flags).toContain('scale=root-of-both');
  });
});

describe('an LSE that errs alone', () => {
  const random = pseudorandom(8);
  const errors = lse.values.map(() => (random() < 0 ? -1 : 1));
  const toldOfLse = (size: number, onlyLse = true, passes = true, common = 0) => {
    const outputs = decodeOutputs(
      {
        out: encode(out.values, 'bf16', [1, heads, queries, dim]),
        lse: encode(
          lse.values.map((x, row) => x + size * (errors[row] + common)),
          'fp32',
          [1, heads, queries],
        ),
      },
      problemShape(problem),
    );
    const allows = (declared: PremiseDeclaration) => passes && declared.factors !== undefined;
    const request = { problem, reference, outputs, onlyLse, cause: null, passes: allows };
    return fitPremise(request)?.flags ?? null;
  };
  const most = 16 * 2 ** -13.4;

  it('is told of factors up to what these may come to over some tiles', () => {
    expect(toldOfLse(0.99 * most)).toContain('factors=as-weights');
    expect(toldOfLse(1.01 * most)).toBeNull();
  });

  it('is not told of them where the output errs too, an audit of them fails, or all rows err one way', () => {
    expect(toldOfLse(most / 4, false)).toBeNull();
    expect(toldOfLse(most / 4, true, false)).toBeNull();
    expect(toldOfLse(most / 8, true, true, 1)).toBeNull();
  });
});
