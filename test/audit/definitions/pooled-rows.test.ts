import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CommonOffset, outputPlaces } from '../../../src/audit/structure/common-offset.js';
import { PooledProjections } from '../../../src/audit/structure/pooled-projections.js';
import { rowVariances, smoothPlaces } from '../../../src/audit/structure/row-tolerance.js';
import { pseudorandom } from '../../setup/problems.js';
import {
  both,
  families,
  sum,
  squared,
  type Row,
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

/** Rows added in two parts, one of which another collection may have, to one that had others before. */
function pooledOf(rows: readonly Row[], cut: number, offset: CommonOffset | null, way: number) {
  const make = () => new PooledProjections(2, offset, exponential);
  const collected = (some: readonly Row[], to: PooledProjections, seed: number) => {
    const random = pseudorandom(seed);
    for (const { row, unit, massOfLse, own } of some) {
      to.addMass(row.mass, own, massOfLse);
      to.add(row, rowVariances(row, exponential), unit);
    }
    for (let i = 0; i < to.phases.length; i++) to.phases[i] += random();
    for (let i = 0; i < to.outputs.length; i++) to.outputs[i] += random();
    return to;
  };
  const [all, other] = [make(), make()];
  collected(rows, all, 3);
  all.clear();
  collected(rows.slice(0, cut), all, 5);
  collected(rows.slice(cut), other, 7);
  if (way === 0) all.merge(other);
  else all.mergeState(other.state());
  const [first, second] = [pseudorandom(5), pseudorandom(7)];
  const phases = all.phases.map(() => first() + second());
  return { pooled: all, phases, outputs: all.outputs.map(() => first() + second()) };
}

describe('the errors of rows that are pooled', () => {
  it('are bounded by their kinds, units of rows that err alike counted as one', () => {
    fc.assert(
      fc.property(
        someRows,
        fc.nat(6),
        fc.boolean(),
        fc.nat(1),
        fc.constantFrom(0, 1, 6),
        (rows, cut, hasOffset, way, z) => {
          const offset = hasOffset ? new CommonOffset('e5m2') : null;
          const { pooled, phases, outputs } = pooledOf(rows, cut, offset, way);
          const { places } = pooled;
          expect(places).toBe(hasOffset ? 64 : smoothPlaces);
          expect(pooled.rows).toBe(rows.length);
          const alone = rows.filter(({ unit }) => unit === null);
          const units = [0, 1]
            .map((unit) => rows.filter((row) => row.unit === unit))
            .filter((of) => of.length > 0);
          const over = (of: (row: Row) => number) => sum(rows.map(of));
          for (const d of both) {
            near(
              pooled.signed[d],
              over(({ row }) => row.signed[d]),
              'signed',
            );
            near(
              pooled.norm[d],
              over(({ row }) => row.norm[d]),
              'norm',
            );
            const at = (family: number) =>
              phases.subarray((3 * d + family) * places, (3 * d + family + 1) * places);
            // An error of the exponential is one number within each coarse place.
            const smooth = families.map((family) =>
              sum(
                Array.from({ length: smoothPlaces }, (_, place) => {
                  const fine = places / smoothPlaces;
                  const weights = [...at(family).subarray(place * fine, (place + 1) * fine)];
                  const own = over(
                    (row) => row.own[d] * row.row.mass[family * smoothPlaces + place],
                  );
                  return Math.abs(sum(weights) - own);
                }),
              ),
            );
            const common =
              offset === null
                ? 0
                : Math.max(
                    ...families.flatMap((family) =>
                      [...at(family)].map((_, shift) =>
                        Math.abs(
                          sum(
                            [...at(family)].map(
                              (x, place) => x * offset.errors[(place + shift) % places],
                            ),
                          ),
                        ),
                      ),
                    ),
                  );
            const ofAllWeights = (some: readonly Row[]) =>
              groupSums(
                some.flatMap(({ weights, row }) => scaled(weights, row.rounding)),
                d,
              );
            const rest = ({ weights, row }: Row) =>
              row.rounding * Math.sqrt(groupSums(weights, d).independent / 3);
            const share = Math.max(
              ...families.map((family) =>
                shareOfLargest(
                  Array.from({ length: smoothPlaces }, (_, place) =>
                    over(({ row }) => {
                      const shift = row.shifts[family] - Math.floor(row.shifts[family]);
                      const from = place + 2 * smoothPlaces - Math.round(shift * smoothPlaces);
                      return row.squares[d * smoothPlaces + (from % smoothPlaces)];
                    }),
                  ),
                ),
              ),
            );
            const variance = {
              weights:
                (share * sum(alone.map((row) => ofAllWeights([row]).squared)) +
                  sum(units.map((of) => ofAllWeights(of).squared))) /
                3,
              outputs:
                sum(
                  [...alone.map((row) => [row]), ...units].map(
                    (of) =>
                      groupSums(
                        of.flatMap(({ outputs }) => outputs),
                        d,
                      ).squared,
                  ),
                ) / 3,
              others:
                (sum(
                  alone.map(
                    ({ row }) =>
                      row.common[d] ** 2 +
                      exponential ** 2 * sum(placesAt(row.smooth, d).map(squared)),
                  ),
                ) +
                  sum(
                    units.map(
                      (of) =>
                        sum(of.map(({ row }) => Math.hypot(row.common[d], row.accumulated[d]))) **
                          2 +
                        exponential ** 2 *
                          sum(
                            placesAt(of[0].row.smooth, d).map(
                              (_, place) =>
                                sum(of.map(({ row }) => placesAt(row.smooth, d)[place])) ** 2,
                            ),
                          ),
                    ),
                  )) /
                3,
            };
            const systematic =
              over(({ row }) => row.systematic[d]) + exponential * Math.max(...smooth);
            const ofRows = (of: keyof ReturnType<typeof groupSums>) =>
              over(({ weights, row }) => row.rounding * groupSums(weights, d)[of]);
            const weights = (known: number) =>
              [
                [known, variance.weights],
                [
                  ofRows('coherent'),
                  sum(alone.map((row) => rest(row) ** 2)) +
                    sum(units.map((of) => sum(of.map(rest)) ** 2)),
                ],
                [ofRows('absolute'), 0],
              ] as const;
            const ofOutputs = (known: number) =>
              [
                [known, variance.outputs],
                [
                  over(({ row }) => row.outputWorst[d]),
                  sum(alone.map(({ row }) => row.accumulated[d] ** 2 / 3)),
                ],
              ] as const;
            const shifted = shiftedOutputs([
              ...outputs.subarray(d * outputPlaces, (d + 1) * outputPlaces),
            ]);
            near(
              pooled.tolerance(d, z),
              systematic + least(z, weights(common), ofOutputs(shifted), variance.others),
              'tolerance',
            );
            near(
              pooled.leastTolerance(d, z),
              systematic + least(z, weights(0), ofOutputs(0), variance.others),
              'least tolerance',
            );
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('have a mean error of the exponential by how evenly their weights lie in the octave', () => {
    fc.assert(
      fc.property(someRows, fc.nat(6), fc.nat(1), fc.constantFrom(0, 5), (rows, cut, way, z) => {
        const { pooled } = pooledOf(rows, cut, null, way);
        const count = rows.length;
        if (count === 0) {
          expect(pooled.meanExponentialError(z)).toBe(0);
          return;
        }
        const uneven = families.map((family) =>
          sum(
            placesAt(rows[0].massOfLse, family).map((_, place) => {
              const mass = rows.map(({ massOfLse }) => placesAt(massOfLse, family)[place]);
              return Math.abs(sum(mass) / count - 1 / smoothPlaces);
            }),
          ),
        );
        const groups = [
          ...rows.filter(({ unit }) => unit === null).map((row) => [row]),
          ...[0, 1].map((unit) => rows.filter((row) => row.unit === unit)),
        ].filter((of) => of.length > 0);
        const squares = groups.flatMap((of) =>
          placesAt(of[0].row.mass, 0).map(
            (_, place) => sum(of.map(({ row }) => placesAt(row.mass, 0)[place])) ** 2,
          ),
        );
        const random = Math.sqrt(sum(squares) / 3) / count;
        near(pooled.meanExponentialError(z), Math.max(...uneven) + z * random);
      }),
    );
  });
});
