import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assembleCheck, checkRequest, checkUnits } from '../../src/campaign/index.js';
import { missingCheckUnits } from '../../src/campaign/assemble-check.js';
import type { CheckUnitResult } from '../../src/campaign/run-check-units.js';
import { hasUnit } from '../../src/campaign/shard.js';
import { checkKernel, lawIds, planCheck, type LawId } from '../../properties/index.js';
import type { ReportedViolation } from '../../src/report/json/check/index.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const kernel = { command: null, model: 'fa4', settings: {}, judgedAs: null };

function requestOf(laws: readonly LawId[], runs: number) {
  return checkRequest(planCheck({}, { laws }), {
    version: '1',
    kernel,
    timeout: null,
    runs,
    seed: 1,
  });
}

const scope = fc.record({
  laws: fc.subarray([...lawIds], { minLength: 1, maxLength: 9 }),
  runs: fc.integer({ min: 1, max: 40 }),
});

describe('the units of a check', () => {
  it('have every problem of every law that is tried, once', () => {
    fc.assert(
      fc.property(scope, ({ laws, runs }) => {
        const request = requestOf(laws, runs);
        const tried = laws.filter((id) => request.laws[id]!.skipped === null);
        const units = checkUnits(request);
        expect(new Set(units.map(({ name }) => name)).size).toBe(units.length);
        for (const id of tried) {
          const rounds = units
            .filter(({ law }) => law === id)
            .flatMap(({ first, last }) =>
              Array.from({ length: last - first + 1 }, (_, i) => first + i),
            );
          expect(rounds).toEqual(Array.from({ length: runs }, (_, i) => i + 1));
        }
        expect(new Set(units.map(({ law }) => law))).toEqual(new Set(tried));
      }),
    );
  });

  it('give no shard the same laws throughout', () => {
    const laws: LawId[] = ['within-bound', 'determinism', 'query-order', 'padding'];
    const units = checkUnits(requestOf(laws, 100));
    for (const index of [1, 2, 3, 4]) {
      const own = units.filter((_, position) => hasUnit({ index, count: 4 }, position));
      expect(new Set(own.map(({ law }) => law)).size).toBe(4);
    }
  });
});

/** A violation of a round, of which nothing but the place is looked at. */
function violationAt(round: number): ReportedViolation {
  const kind = { id: `law ${round}`, title: 'wrong', equivalents: [] };
  const problem = { batch: 1, heads: 1 };
  return { round, run: 1, statement: 'wrong', kind, problem } as unknown as ReportedViolation;
}

describe('what is found in units, put together', () => {
  /**
   * The law that a divided check must keep: laws take turns, one problem each, and one that fails is
   * tried no more. Here the turns are played out, one by one.
   */
  function playedOut(laws: readonly LawId[], runs: number, fails: ReadonlyMap<LawId, number>) {
    const tried = new Map<LawId, number>();
    const found = new Map<LawId, number>();
    let count = 0;
    for (let round = 1; round <= runs; round++)
      for (const id of laws) {
        if (found.has(id)) continue;
        count++;
        tried.set(id, round);
        if (fails.get(id) === round) found.set(id, count);
      }
    return { tried, found, count };
  }

  inTurn('is what one run finds, problem by problem, whatever was tried beyond a violation', () => {
    const planned = scope.chain(({ laws, runs }) =>
      fc.record({
        runs: fc.constant(runs),
        laws: fc.constant(laws.filter((id) => requestOf([id], 1).laws[id]!.skipped === null)),
        fails: fc.array(fc.option(fc.integer({ min: 1, max: runs })), {
          minLength: 9,
          maxLength: 9,
        }),
        // Whether a shard tries a unit that lies behind a violation that it does not know of.
        beyond: fc.infiniteStream(fc.boolean()),
      }),
    );
    fc.assert(
      fc.property(planned, ({ runs, laws, fails, beyond }) => {
        const request = requestOf(laws, runs);
        const failing = new Map(
          laws.flatMap((id, i) => {
            const round = fails[i] ?? null;
            return round === null ? [] : [[id, round] as const];
          }),
        );
        const results = checkUnits(request).flatMap(({ name, law, first, last }) => {
          const fail = failing.get(law as LawId) ?? Infinity;
          if (first > fail && !beyond.next().value) return [];
          const isHit = first <= fail && fail <= last;
          const result: CheckUnitResult = {
            runs: isHit ? fail - first + 1 : last - first + 1,
            unsupported: 0,
            sizes: null,
            widened: [],
            refusal: '',
            seconds: 0.25,
            violation: isHit ? violationAt(fail) : null,
          };
          return [[name, { unit: name, seconds: 0.5, result }] as const];
        });
        const records = new Map(results);
        const report = assembleCheck({
          request,
          records,
          outOfTime: false,
          execution: null,
          shards: null,
        });
        const { tried, found, count } = playedOut(laws, runs, failing);
        expect(report.runs).toBe(count);
        for (const { name: property, runs: of, violation } of report.properties) {
          const name = property as LawId;
          expect(of).toBe(tried.get(name) ?? 0);
          expect(violation?.run).toBe(found.get(name));
          expect(violation?.round).toBe(violation === null ? undefined : failing.get(name));
        }
        expect(missingCheckUnits({ request, records }, 3).size).toBe(0);
      }),
    );
  });

  it('lacks a unit that comes before any violation, and names its shard', () => {
    const request = requestOf(['within-bound', 'determinism'], 20);
    const units = checkUnits(request);
    for (const [position, missing] of units.entries()) {
      const records = new Map(
        units
          .filter((unit) => unit !== missing)
          .map(({ name }) => {
            const counts = { runs: 5, unsupported: 0, sizes: null, widened: [], refusal: '' };
            const result = { ...counts, seconds: 0, violation: null };
            return [name, { unit: name, seconds: 0, result }] as const;
          }),
      );
      const found = missingCheckUnits({ request, records }, 3);
      expect([...found]).toEqual([[(position % 3) + 1, 1]]);
    }
  });

  it('counts a law of which the kernel takes no problem as never tried, with the last reason', () => {
    const request = requestOf(['within-bound'], 10);
    const records = new Map(
      checkUnits(request).map(({ name }, i) => {
        const counts = { runs: 5, unsupported: 5, sizes: null, widened: [], refusal: `no ${i}` };
        const result = { ...counts, seconds: 0, violation: null };
        return [name, { unit: name, seconds: 0, result }] as const;
      }),
    );
    const [property] = assembleCheck({
      request,
      records,
      outOfTime: false,
      execution: null,
      shards: null,
    }).properties;
    expect(property).toMatchObject({
      result: 'untried',
      skipped: 'none of its problems could be tried: no 1',
    });
  });
});

describe('the turns that are played out above', () => {
  it('are those of checkKernel', async () => {
    const { laws, runs } = await checkKernel(
      ({ q }) => {
        throw new Error(`nothing of ${q.format}`);
      },
      {},
      { laws: ['within-bound', 'determinism'], runs: 3, seed: 1, shrinkSeconds: 0 },
    );
    expect(runs).toBe(2);
    expect(laws.map(({ failure }) => failure?.runsUntil)).toEqual([1, 2]);
  });
});
