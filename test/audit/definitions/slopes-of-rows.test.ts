import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { outputPlaces } from '../../../src/audit/structure/common-offset.js';
import { SlopeDispersion } from '../../../src/audit/structure/head-tests.js';
import {
  leastRowTolerance,
  rowTolerance,
  rowVariances,
} from '../../../src/audit/structure/row-tolerance.js';
import {
  both,
  sum,
  squared,
  type Row,
  rowOf,
  someRows,
  groupSums,
  scaled,
  placesAt,
  shareOfLargest,
  shiftedOutputs,
  least,
  exponential,
  near,
} from './made-up-rows.js';

describe('the error of one row', () => {
  it('is bounded by its kinds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 20 }), fc.constantFrom(0, 1, 6), (seed, z) => {
        const { row, weights, outputs } = rowOf(seed, null);
        const variances = rowVariances(row, exponential);
        const allowance = { variances, deviations: z, exponential };
        for (const d of both) {
          const ofWeights = groupSums(scaled(weights, row.rounding), d);
          const ofOutputs = groupSums(outputs, d);
          near(variances.weights[d], ofWeights.squared / 3);
          near(variances.outputs[d], ofOutputs.squared / 3);
          const smooth = placesAt(row.smooth, d);
          const others = (row.common[d] ** 2 + exponential ** 2 * sum(smooth.map(squared))) / 3;
          near(variances.others[d], others);
          const wanted = (shifted: number) =>
            row.systematic[d] +
            exponential * sum(smooth.map(Math.abs)) +
            least(
              z,
              [
                [row.known[d], ofWeights.squared / 3],
                [ofWeights.coherent, ofWeights.independent / 3],
                [ofWeights.absolute, 0],
              ],
              [
                [shifted, ofOutputs.squared / 3],
                [row.outputWorst[d], row.accumulated[d] ** 2 / 3],
              ],
              others,
            );
          const places = row.places.subarray(d * outputPlaces, (d + 1) * outputPlaces);
          near(rowTolerance(row, d, allowance), wanted(shiftedOutputs([...places])));
          near(leastRowTolerance(row, d, allowance), wanted(0));
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('the scatter of the slopes of rows', () => {
  it('has the tail of a sum of squares, outputs that round alike counted as one', () => {
    fc.assert(
      fc.property(
        someRows,
        fc.nat(6),
        fc.constantFrom(1e-3, 1e-12),
        (rows, cut, falseAlarmRate) => {
          const make = (some: readonly Row[], to = new SlopeDispersion()) => {
            for (const { row, unit } of some)
              to.add(row, rowVariances(row, exponential), unit ?? -1);
            return to;
          };
          const all = make(rows);
          all.clear();
          make(rows.slice(0, cut), all).mergeState(make(rows.slice(cut)).state());
          // The slope of a row is Σ r·X / Σ Y·X, and its weight Σ Y·X.
          const used = rows.filter(({ row }) => row.norm[0] > 0);
          const total = sum(used.map(({ row }) => row.norm[0]));
          const of = [-1, 0, 1].map((unit) => used.filter((row) => (row.unit ?? -1) === unit));
          const units = of.map((some) => ({
            outputs: sum(
              some.map(({ outputs, row }) => groupSums(outputs, 0).squared / 3 / row.norm[0]),
            ),
            rest: sum(
              some.map(({ row, weights }) => {
                const share = shareOfLargest(placesAt(row.squares, 0));
                const ofWeights = groupSums(scaled(weights, row.rounding), 0).squared / 3;
                const random = Math.max(share * ofWeights, row.known[0] ** 2);
                return (random + rowVariances(row, exponential).others[0]) / row.norm[0];
              }),
            ),
          }));
          const together = groupSums(
            used.flatMap(({ outputs }) => outputs),
            0,
          ).squared;
          const apart = sum(used.map(({ outputs }) => groupSums(outputs, 0).squared));
          const alike = used.length === 0 ? 1 : Math.max(1, together / apart);
          const t = Math.log(1 / falseAlarmRate);
          const trace = sum(units.map(({ outputs, rest }) => outputs + rest));
          // (rest + outputs)², of which the outputs' own square counts `alike` times.
          const squares = sum(
            units.map(({ outputs, rest }) => rest ** 2 + 2 * rest * outputs + alike * outputs ** 2),
          );
          const largest = Math.max(...units.map(({ outputs, rest }) => rest + alike * outputs));
          const random = trace + 2 * Math.sqrt(squares * t) + 2 * largest * t;
          const systematic = sum(used.map(({ row }) => row.systematic[0] ** 2 / row.norm[0]));
          const { statistic, threshold } = all.result(falseAlarmRate);
          if (used.length === 0) {
            expect([statistic, threshold]).toEqual([0, 0]);
            return;
          }
          const measured = sum(
            used.map(({ row }) => row.norm[0] * (row.signed[0] / row.norm[0]) ** 2),
          );
          near(statistic, Math.sqrt(measured / total), 'statistic');
          near(
            threshold,
            (Math.sqrt(random) + Math.sqrt(systematic)) / Math.sqrt(total),
            'threshold',
          );
        },
      ),
    );
  });
});
