import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { laws, resolvePromises } from '../../../properties/index.js';
import { scoreRanges } from '../../../properties/laws/score-range.js';
import { storingError } from '../../../properties/laws/within-bound.js';
import { describePlace } from '../../../src/audit/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention } from '../../kernels/features/index.js';
import { upTo } from '../gradients/drawn-case.js';
import { runOf } from './changed-kernel.js';
import { drawnProblem, tryByHand } from './law-by-hand.js';
import { queryPlace } from './try-law.js';

const given = { features: ['mask'], softcap: true } as const;
const promises = resolvePromises({ formats: ['fp32'], lse: true, ...given });

/** Small problems with masks, scales of both signs, softcaps, and a NaN in a key. */
const problems = fc
  .record({
    problem: fc.oneof(drawnProblem({ pairs: true }), drawnProblem({ masked: true })),
    scale: fc.constantFrom(0.7, -0.7, 3),
    softcap: fc.constantFrom(null, null, 0.5),
    special: fc.constantFrom(false, false, true),
  })
  .map(({ problem, scale, softcap, special }): Problem => {
    const values = decodeTensor(problem.k);
    if (special) values[values.length - 1] = NaN;
    const k = { ...problem.k, data: encodeFromFloat64(formats.fp32, values) };
    return { ...problem, k, scale, softcap };
  });

/** What is known of the LSE of a row: its largest score, the number of its keys, and the error of a kernel. */
interface Known {
  readonly largest: number;
  readonly highest: number;
  readonly error: number;
}

/** The same of all rows, from their scores by definition; null for a row of no keys, or of a NaN. */
function knownOf(problem: Problem): (Known | null)[] {
  const { heads, kvHeads, groupSize, queries, keys, qkDim } = problemShape(problem);
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  const { outputs, ...run } = runOf(problem);
  const fp32 = { out: { ...outputs.out, format: 'fp32' as const }, lse: null };
  const errors = scoreRanges({ ...run, outputs: fp32 }, promises);
  return definedAttention(problem).visible.map((seen, row) => {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const scores = seen.map((key) => {
      const terms = upTo(qkDim).map((t) => q[row * qkDim + t] * k[(kv * keys + key) * qkDim + t]);
      const score = problem.scale * terms.reduce((a, b) => a + b, 0);
      return problem.softcap === null
        ? score
        : problem.softcap * Math.tanh(score / problem.softcap);
    });
    const largest = Math.max(...scores);
    if (!Number.isFinite(largest)) return null;
    return { largest, highest: largest + Math.log(seen.length), error: errors[row]!.lseError };
  });
}

/** The LSE that is apart from a number by a multiple of what errors and the storing of this LSE explain. */
function apart(from: number, multiple: number, errorAt: (lse: number) => number): number {
  const near = from + multiple * errorAt(from);
  const found = from + multiple * errorAt(near);
  // An ulp is another beyond a power of two.
  fc.pre(errorAt(found) === errorAt(near));
  return found;
}

const errorOf = ({ error }: Known, lse: number) => error + storingError('fp32', lse, error);

describe('the LSE of each row', () => {
  it('lies between its largest score and ln n more, and does not fall with the keys', async () => {
    await fc.assert(
      fc.asyncProperty(
        problems,
        fc.nat({ max: laws['lse-monotone'].choices - 1 }),
        fc.nat(),
        fc.constantFrom('below', 'above', 'fewer'),
        fc.constantFrom(0.99, 1.01),
        async (problem, choice, which, what, factor) => {
          const { batch, heads, queries, keys } = problemShape(problem);
          const rows = upTo(batch * heads * queries);
          const whole = knownOf(problem);
          // Of the first so many keys of nine parts.
          const kept = Math.ceil((keys * (choice + 1)) / 9);
          let ofFewer: (Known | null)[] | null = null;
          const isKnown = (row: number) =>
            whole[row] !== null && (what !== 'fewer' || (ofFewer?.[row] ?? null) !== null);
          const inside = (row: number) => {
            const { largest, highest } = whole[row]!;
            return largest + ((highest - largest) * ((7 * row) % 5)) / 5;
          };
          let wrong: number | undefined;
          const pick = () => {
            const known = rows.filter(isKnown);
            wrong = known[which % known.length];
          };
          const { statement, inapplicable, runs } = await tryByHand('lse-monotone', problem, {
            choice,
            strength: 'bound',
            promises: given,
            change: ({ lse, problem: posed }, index) => {
              if (index === 0) {
                if (what !== 'fewer') pick();
                for (const row of rows) lse[row] = whole[row] === null ? 99 : inside(row);
                if (wrong === undefined) return;
                const { largest, highest } = whole[wrong]!;
                const [edge, sign] = what === 'below' ? [largest, -1] : [highest, 1];
                lse[wrong] = apart(edge, sign * factor, (x) => errorOf(whole[wrong!]!, x));
                return;
              }
              ofFewer = knownOf(posed);
              if (what === 'fewer') pick();
              for (const row of rows) {
                const known = ofFewer[row];
                // The range of fewer keys is no matter of this run.
                lse[row] = known === null || whole[row] === null ? 99 : inside(row) - 7;
                if (row !== wrong || what !== 'fewer') continue;
                const own = inside(row);
                const ofWhole = errorOf(whole[row]!, own);
                lse[row] = apart(own, factor, (x) => errorOf(known!, x) + ofWhole);
              }
            },
          });
          expect(inapplicable).toBe(whole.every((row) => row === null));
          if (inapplicable) return;
          const isWhole = what !== 'fewer' && factor > 1 && wrong !== undefined;
          const isMasked = problem.causal || problem.window !== null;
          expect(runs).toHaveLength(isWhole || isMasked || kept === keys ? 1 : 2);
          if (runs.length === 2) {
            expect(problemShape(runs[1].problem).keys).toBe(kept);
          }
          if (wrong === undefined || factor < 1) {
            expect(statement).toBeNull();
            return;
          }
          const [b, head, query] = queryPlace(problem, wrong);
          const words = `the LSE at ${describePlace({ batch: b, head, query })} is `;
          expect(statement?.slice(0, words.length)).toBe(words);
          const seen = definedAttention(problem).visible[wrong].length;
          expect(statement).toContain(
            what === 'fewer' ? ` of all ${seen};` : `the row's largest of ${seen} scores is `,
          );
        },
      ),
      { numRuns: 40 },
    );
  });
});
