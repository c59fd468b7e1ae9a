import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Descending } from '../../../src/meaning/domains/descending.js';
import { RealDomain, RoundingDomain } from '../../../src/meaning/domains/index.js';
import { programs, traceOf } from '../random-trace.js';

describe('The numbers that wait', () => {
  it('come out once each in descending order, also those that are put in on the way', () => {
    const limit = 5000;
    fc.assert(
      fc.property(
        fc.array(fc.nat(limit - 1), { minLength: 1, maxLength: 60 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        (first, later) => {
          const waiting = new Descending(limit);
          const expected = new Set(first);
          for (const value of first) waiting.push(value);
          const found: number[] = [];
          for (let next; (next = waiting.pop()) !== -1;) {
            found.push(next);
            const more = later[found.length - 1];
            if (more === undefined || next === 0) continue;
            expected.add(more % next);
            waiting.push(more % next);
          }
          expect(found).toEqual([...expected].sort((a, b) => b - a));
        },
      ),
    );
  });
});

describe('The parts of an error', () => {
  it('sum to it, of one value after the other', () => {
    fc.assert(
      fc.property(programs, (program) => {
        const { trace, values } = traceOf(program);
        const real = new RealDomain(trace);
        real.extend();
        const rounding = new RoundingDomain(trace, real);
        for (const value of values) {
          const shares = rounding.sharesOf(value);
          if (shares === null) continue;
          const parts = [...shares.parts.values()];
          // Parts beyond any number are those of operands without a real value, or of huge slopes that cancel.
          const size = parts.reduce((sum, part) => sum + Math.abs(part), 0);
          if (!(size < 2 ** 20)) continue;
          const sum = parts.reduce((all, part) => all + part, 0);
          expect(Math.abs(sum - shares.error)).toBeLessThanOrEqual(
            2 ** -30 * (size + Math.abs(trace.numberOf(value))),
          );
        }
      }),
    );
  });

  it('of a weighted sum are the weighted sums of those of its values', () => {
    fc.assert(
      fc.property(programs, fc.array(fc.integer({ min: -4, max: 4 })), (program, given) => {
        const { trace, values: all } = traceOf(program);
        const real = new RealDomain(trace);
        real.extend();
        const rounding = new RoundingDomain(trace, real);
        const one = new Map(all.map((value) => [value, rounding.sharesOf(value)]));
        const values = all.filter((value) => {
          const parts = [...(one.get(value)?.parts.values() ?? [NaN])];
          return parts.reduce((sum, part) => sum + Math.abs(part), 0) < 2 ** 20;
        });
        const weights = values.map((_, i) => given[i] ?? 1);
        const { parts } = rounding.sharesOfSum(values, weights);
        for (const operation of trace.operations.keys()) {
          const due = values.map(
            (value, i) => weights[i] * (one.get(value)!.parts.get(operation) ?? 0),
          );
          const size = due.reduce((sum, part) => sum + Math.abs(part), 0);
          const sum = due.reduce((total, part) => total + part, 0);
          expect(Math.abs((parts.get(operation) ?? 0) - sum)).toBeLessThanOrEqual(
            2 ** -40 * size + 2 ** -1000,
          );
        }
      }),
    );
  });
});
