import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  offRows,
  rowsInScope,
  scopesOf,
  unitsOf,
} from '../../../../src/audit/gradients/diagnosis/scope.js';
import { gradientQuantities } from '../../../../src/audit/gradients/gradient-quantities.js';
import { problemShape, type Problem } from '../../../../src/problem/index.js';
import { bareFailure, drawGradient, drawProblem, type BareGradient } from './bare-failure.js';
import { drawFrom } from './random-pairs.js';

interface Drawn {
  readonly seed: number;
  readonly isPacked: boolean;
  readonly groupSize: number;
}

const drawns: fc.Arbitrary<Drawn> = fc.record({
  seed: fc.nat(1e6),
  isPacked: fc.boolean(),
  groupSize: fc.constantFrom(1, 3),
});

const problemOf = ({ seed, isPacked, groupSize }: Drawn) => drawProblem(seed, isPacked, groupSize);

const [dqQuantity, dkQuantity, dvQuantity] = gradientQuantities;

/** The sequence of a row of queries or keys, its head and its number in its sequence. */
interface At {
  readonly sequence: number;
  readonly head: number;
  readonly number: number;
}

/** All rows of queries or keys, one after the other. */
function placesOf(problem: Problem, of: 'queries' | 'keys'): At[] {
  const { batch, heads, kvHeads, queries, keys } = problemShape(problem);
  const [rows, count] = of === 'queries' ? [queries, heads] : [keys, kvHeads];
  const first = of === 'queries' ? 'firstQuery' : 'firstKey';
  const all: At[] = [];
  for (let entry = 0; entry < batch; entry++)
    for (let head = 0; head < count; head++)
      for (let row = 0; row < rows; row++) {
        const at = problem.sequences?.findIndex(
          (one) => row >= one[first] && row < one[first] + one[of],
        );
        all.push(
          at === undefined
            ? { sequence: entry, head, number: row }
            : { sequence: at, head, number: row - problem.sequences![at][first] },
        );
      }
  return all;
}

const unitKey = ({ sequence, head }: At) => `${sequence}:${head}`;

const flags = <T>(all: readonly T[], is: (one: T) => boolean) => all.map((one) => Number(is(one)));

/** A gradient of which some rows are off by so much of what makes them so. */
function withOff(
  gradient: BareGradient,
  columns: number,
  rows: readonly number[],
  share = 2,
): BareGradient {
  const values = gradient.values.slice();
  for (const row of rows) {
    const at = row * columns;
    values[at] += share * gradient.total[at];
  }
  return { ...gradient, values };
}

describe('rows of a gradient', () => {
  it('belong to the heads of their sequences', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const problem = problemOf(drawn);
        const { batch, heads, kvHeads } = problemShape(problem);
        const sequences = problem.sequences?.length ?? batch;
        for (const quantity of gradientQuantities) {
          const isOfQueries = quantity.name === 'dq';
          const { unit, count } = unitsOf(bareFailure(problem, {}, []), quantity);
          const units = isOfQueries ? heads : kvHeads;
          const places = placesOf(problem, isOfQueries ? 'queries' : 'keys');
          expect([...unit]).toEqual(places.map(({ sequence, head }) => sequence * units + head));
          expect(count).toBe(sequences * units);
        }
      }),
      { numRuns: 8 },
    );
  });

  it('are off by an element beyond its worst case, or by more than three deviations of all', () => {
    fc.assert(
      fc.property(drawns, fc.boolean(), (drawn, isOne) => {
        const problem = problemOf(drawn);
        const draw = drawFrom(drawn.seed);
        const made = drawGradient(problem, 'dq', draw);
        const columns = 3;
        const rows = made.values.length / columns;
        const share = Array.from(
          { length: rows },
          () => [0, 0.99, -0.99, 1.01, -1.01][draw.count(5)],
        );
        const values = made.values.slice();
        // Without an element beyond its worst case errors of a row are as one.
        const total = isOne ? made.total : made.total.map(() => 1);
        for (let row = 0; row < rows; row++) {
          // A row that is right may have no roundings.
          if (share[row] === 0 && draw.flips())
            for (const bound of [made.systematic, made.deviation, made.shift, total])
              bound.fill(0, row * columns, (row + 1) * columns);
          if (share[row] === 0) {
            for (let at = row * columns; at < (row + 1) * columns; at++)
              values[at] = made.exact[at] + made.shift[at];
            continue;
          }
          if (isOne) {
            const at = row * columns + draw.count(columns);
            made.deviation.fill(10, row * columns, (row + 1) * columns);
            values[at] += share[row] * total[at];
            continue;
          }
          for (let at = row * columns; at < (row + 1) * columns; at++) {
            const allowed = made.systematic[at] + 3 * made.deviation[at];
            values[at] += (draw.flips() ? 1 : -1) * share[row] * allowed;
          }
        }
        const failed = bareFailure(problem, { dq: { ...made, total, values } }, ['dq']);
        const wanted = flags(share, (one) => Math.abs(one) > 1);
        expect([...offRows(failed, failed.given[0])]).toEqual(wanted);
      }),
      { numRuns: 10 },
    );
  });
});

describe('scopes of a fault', () => {
  it('are the heads whose dQ is off, and the tiles from the first to the last row that is', () => {
    fc.assert(
      fc.property(drawns, (drawn) => {
        const problem = problemOf(drawn);
        const draw = drawFrom(drawn.seed + 1);
        const places = placesOf(problem, 'queries');
        const units = [...new Set(places.map(unitKey))];
        const chosen = units.filter(() => draw.count(4) > 0);
        const isWide = draw.flips();
        const [least, most] = isWide ? [0, 36] : [draw.count(37), 16 + draw.count(16)];
        const isOff = (at: At) =>
          chosen.includes(unitKey(at)) && at.number >= least && at.number <= most;
        const off = [...places.keys()].filter(
          (row) => isOff(places[row]) && (isWide || draw.count(3) > 0),
        );
        const dq = withOff(drawGradient(problem, 'dq', draw), 3, off);
        const found = scopesOf(bareFailure(problem, { dq }, ['dq'])).map((one) => [...one]);
        if (off.length === 0) {
          expect(found).toEqual([]);
          return;
        }
        const hit = new Set(off.map((row) => unitKey(places[row])));
        const inUnits = flags(places, (at) => hit.has(unitKey(at)));
        const numbers = off.map((row) => places[row].number);
        const first = Math.min(...numbers) - (Math.min(...numbers) % 16);
        const end = Math.max(...numbers) - (Math.max(...numbers) % 16) + 16;
        const stretch = flags(
          places,
          (at) => hit.has(unitKey(at)) && at.number >= first && at.number < end,
        );
        const wanted = [];
        if (inUnits.includes(0)) wanted.push(inUnits);
        if (stretch.join() !== inUnits.join()) wanted.push(stretch);
        expect(found).toEqual(wanted);
      }),
      { numRuns: 20 },
    );
  });

  it('are the query heads of the keys that are off, together and one by one of each group, where dQ is right', () => {
    fc.assert(
      fc.property(drawns, fc.boolean(), (drawn, hasQueries) => {
        const problem = problemOf(drawn);
        const { groupSize } = drawn;
        const draw = drawFrom(drawn.seed + 2);
        const name = draw.flips() ? 'dk' : 'dv';
        const keyPlaces = placesOf(problem, 'keys');
        const places = placesOf(problem, 'queries');
        const units = [...new Set(keyPlaces.map(unitKey))];
        const chosen = units.filter(() => draw.count(5) > 0);
        const off = [...keyPlaces.keys()].filter(
          (row) => chosen.includes(unitKey(keyPlaces[row])) && draw.flips(),
        );
        const gradients = {
          ...(hasQueries && { dq: drawGradient(problem, 'dq', draw) }),
          ...(name === 'dv' && { dk: drawGradient(problem, 'dk', draw) }),
          [name]: withOff(drawGradient(problem, name, draw), name === 'dk' ? 3 : 2, off),
        };
        const found = scopesOf(bareFailure(problem, gradients, [name])).map((one) => [...one]);
        const hit = new Set(off.map((row) => unitKey(keyPlaces[row])));
        const isRead = ({ sequence, head }: At) =>
          hit.has(`${sequence}:${Math.floor(head / groupSize)}`);
        const whole = flags(places, isRead);
        const wanted = whole.includes(0) ? [whole] : [];
        for (let member = 0; member < groupSize && groupSize > 1; member++)
          wanted.push(flags(places, (at) => isRead(at) && at.head % groupSize === member));
        expect(found).toEqual(wanted);
      }),
      { numRuns: 20 },
    );
  });

  it('are none where nothing failed', () => {
    const problem = drawProblem(1, false, 1);
    const dq = drawGradient(problem, 'dq', drawFrom(1));
    expect(scopesOf(bareFailure(problem, { dq }, []))).toEqual([]);
  });
});

describe('the rows in a scope', () => {
  it('are for dQ the rows themselves, and for dK and dV the keys of heads that no other row reads', () => {
    fc.assert(
      fc.property(drawns, fc.boolean(), (drawn, isSplit) => {
        const problem = problemOf(drawn);
        const { groupSize } = drawn;
        const draw = drawFrom(drawn.seed + 3);
        const places = placesOf(problem, 'queries');
        const keyPlaces = placesOf(problem, 'keys');
        const chosen = new Set(keyPlaces.map(unitKey).filter(() => draw.count(9) === 0));
        const read = ({ sequence, head }: At) => `${sequence}:${Math.floor(head / groupSize)}`;
        const scope = Uint8Array.from(places, (at) => Number(chosen.has(read(at))));
        const failed = bareFailure(problem, {}, []);
        const out = draw.count(scope.length);
        // One row apart from the others of its keys.
        if (isSplit) scope[out] = 1 - scope[out];
        const rowsOf = (quantity: (typeof gradientQuantities)[number], of: Uint8Array | null) => {
          const found = rowsInScope(failed, { quantity }, of);
          return found && [...found];
        };
        // Keys of a sequence without queries are in no scope.
        const isRead = new Set(places.map(read));
        const wanted = flags(keyPlaces, (at) => chosen.has(unitKey(at)) && isRead.has(unitKey(at)));
        expect(rowsOf(dqQuantity, scope)).toEqual([...scope]);
        for (const quantity of [dkQuantity, dvQuantity]) {
          expect(rowsOf(quantity, scope)).toEqual(isSplit ? null : wanted);
          expect(rowsOf(quantity, null)).toEqual(keyPlaces.map(() => 1));
        }
        expect(rowsOf(dqQuantity, null)).toEqual(places.map(() => 1));
      }),
      { numRuns: 12 },
    );
  });
});
