import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laws, resolvePromises } from '../../../properties/index.js';
import { exactAttention, runBounds } from '../../../properties/laws/within-bound.js';
import { describePlace } from '../../../src/audit/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { upTo } from '../gradients/drawn-case.js';
import { drawnProblem, tryByHand, type DefinedRun } from './law-by-hand.js';
import { runOf } from './changed-kernel.js';
import { queryPlace } from './try-law.js';

const promises = resolvePromises({ formats: ['fp32'], lse: true });
const kinds = { promises: { features: ['mask'] } } as const;
const sum = (terms: readonly number[]) => terms.reduce((a, b) => a + b, 0);

/** Exact attention of a problem, and the bounds of a run in fp32. */
function solved(problem: Problem) {
  const { outputs } = runOf(problem);
  const fp32 = {
    out: { ...outputs.out, format: problem.q.format },
    lse: { ...outputs.lse, format: 'fp32' as const },
  };
  const reference = exactAttention(problem);
  const bounds = runBounds({ problem, outputs: fp32 }, reference, promises);
  return { bounds, exact: reference.quantities };
}

/** A value put together, and the most that the whole may be apart from it. */
interface Together {
  readonly value: number;
  readonly limit: number;
}

/** The LSE and the row of O that parts make, and their limits: the theorem that the law states, as it is written. */
function together(whole: Problem, parts: readonly DefinedRun[]) {
  const { vDim } = problemShape(whole);
  const own = solved(whole);
  const of = parts.map(({ problem }) => solved(problem));
  return (row: number) => {
    const logOf = own.exact.lse.values[row];
    const shares = of.map(({ exact }) => Math.exp(exact.lse.values[row] - logOf));
    const off = of.map(({ bounds }) => bounds.lse[row]);
    const common = Math.log(sum(shares.map((w, i) => w * Math.exp(off[i]))));
    const found = parts.map(({ lse }) => Math.exp(lse[row]));
    const lse: Together = { value: Math.log(sum(found)), limit: own.bounds.lse[row] + common };
    const columns = upTo(vDim).map((column): Together => {
      const at = row * vDim + column;
      const terms = of.map(({ exact, bounds }, i) => {
        const stretch = Math.exp(off[i] + common);
        const apart = Math.abs(exact.out.values[at] - own.exact.out.values[at]);
        return shares[i] * (stretch * bounds.out[at] + (stretch - 1) * apart);
      });
      return {
        value: sum(parts.map(({ out }, i) => found[i] * out[at])) / sum(found),
        limit: own.bounds.out[at] + sum(terms),
      };
    });
    return { lse, columns };
  };
}

/** What a part gives is its own affair: results far off, in each part in another way. */
function move({ lse, out }: DefinedRun, index: number) {
  lse.forEach((x, row) => (lse[row] = x + Math.sin(3 * row + index) / 4));
  out.forEach((x, at) => (out[at] = x + Math.sin(at + 5 * index)));
}

describe('parts of the keys', () => {
  it('make the whole by the weights of their LSEs, to the bounds of both', async () => {
    await fc.assert(
      fc.asyncProperty(
        drawnProblem({ pairs: true }),
        fc.nat({ max: laws['key-splitting'].choices - 1 }),
        fc.nat(),
        fc.constantFrom(-1, 1),
        fc.constantFrom('lse' as const, 'out' as const),
        async (problem, choice, which, sign, name) => {
          const { runs } = await tryByHand('key-splitting', problem, { choice, ...kinds });
          const [, ...parts] = runs;
          const { batch, heads, queries, vDim } = problemShape(problem);
          // Of a row that some part sees nothing of nothing is said.
          const known = upTo(batch * heads * queries).filter((row) =>
            parts.every(({ visible }) => visible[row].length > 0),
          );
          fc.pre(parts.length > 0 && known.length > 0);
          parts.forEach((run, index) => move(run, index + 1));
          const ofRow = together(problem, parts);
          const row = known[which % known.length];
          const column = which % vDim;
          const tried = async (factor: number) => {
            const { statement } = await tryByHand('key-splitting', problem, {
              choice,
              ...kinds,
              change: (run, index) => {
                if (index > 0) {
                  move(run, index);
                  return;
                }
                run.lse.fill(9);
                run.out.fill(9);
                for (const one of known) {
                  const { lse, columns } = ofRow(one);
                  run.lse[one] = lse.value;
                  columns.forEach(({ value }, c) => (run.out[one * vDim + c] = value));
                }
                const { lse, columns } = ofRow(row);
                if (name === 'lse') run.lse[row] += sign * factor * lse.limit;
                else run.out[row * vDim + column] += sign * factor * columns[column].limit;
              },
            });
            return statement;
          };
          expect(await tried(0.99)).toBeNull();
          const statement = (await tried(1.01)) ?? 'it holds';
          const [b, head, query] = queryPlace(problem, row);
          const place = { batch: b, head, query, ...(name === 'out' ? { column } : {}) };
          const words = `${name === 'lse' ? 'the LSE' : 'O'} at ${describePlace(place)} is `;
          expect(statement.slice(0, words.length)).toBe(words);
          const starts = parts.map((_, i) =>
            sum(parts.slice(0, i).map((part) => problemShape(part.problem).keys)),
          );
          expect(statement).toContain(
            `from the ${parts.length} parts, which begin at keys ${starts.join(', ')};`,
          );
        },
      ),
      { numRuns: 6 },
    );
  });
});
