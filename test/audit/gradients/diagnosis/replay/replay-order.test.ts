import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replayOrder } from '../../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { problemShape } from '../../../../../src/problem/index.js';
import {
  bareFailure,
  drawGradient,
  drawProblem,
  type BareGradient,
  type Named,
} from '../../definitions/bare-failure.js';
import { drawFrom } from '../../definitions/random-pairs.js';

/** A gradient each of whose elements errs by another share of its bound. */
function drawErring(of: BareGradient, { between, flips }: ReturnType<typeof drawFrom>) {
  const values = of.values.map((x, i) => x + (flips() ? 1 : -1) * between(0, 3) * of.total[i]);
  return { ...of, values };
}

/** The numbers from 0, those with the largest value first. */
function byLargest(values: readonly number[]): number[] {
  return values.map((_, i) => i).sort((a, b) => values[b] - values[a]);
}

/** The largest error beside its bound of each of so many equal parts of a gradient. */
function worstParts({ values, exact, shift, total }: BareGradient, parts: number): number[] {
  const errors = Array.from(values, (x, i) => Math.abs(x - exact[i] - shift[i]) / total[i]);
  const size = errors.length / parts;
  return Array.from({ length: parts }, (_, part) =>
    Math.max(...errors.slice(part * size, (part + 1) * size)),
  );
}

describe('the order in which groups and rows are replayed', () => {
  it('begins with those that err most beside their bounds, and has rows at equal distances', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 30 }),
        fc.boolean(),
        fc.constantFrom(1, 2),
        fc.subarray<Named>(['dq', 'dk', 'dv'], { minLength: 1 }),
        (seed, isPacked, groupSize, names) => {
          const problem = drawProblem(seed, isPacked, groupSize);
          const { batch, heads, kvHeads, queries } = problemShape(problem);
          const draw = drawFrom(seed + 1);
          const gradients: Partial<Record<Named, BareGradient>> = Object.fromEntries(
            names.map((name) => [name, drawErring(drawGradient(problem, name, draw), draw)]),
          );
          const found = replayOrder(bareFailure(problem, gradients, names));
          const ofGroups = Object.values(gradients).map((one) => worstParts(one, batch * kvHeads));
          const worst = ofGroups[0].map((_, i) => Math.max(...ofGroups.map((parts) => parts[i])));
          expect(found.groups).toEqual(byLargest(worst));
          const { dq } = gradients;
          const rows = batch * heads * queries;
          // The middles of eight equal parts.
          const apart = [1, 3, 5, 7, 9, 11, 13, 15].map((x) => Math.floor((x * rows) / 16));
          const first = dq === undefined ? [] : byLargest(worstParts(dq, rows)).slice(0, 8);
          const wanted = dq === undefined ? [] : [...new Set([...first, ...apart])];
          expect(found.rows).toEqual(wanted);
        },
      ),
      { numRuns: 30 },
    );
  });
});
