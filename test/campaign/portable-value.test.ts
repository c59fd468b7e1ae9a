import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packValue, unpackValue } from '../../src/campaign/profile-campaign.js';

const number = fc.oneof(
  fc.double(),
  fc.constantFrom(-0, 0, NaN, Infinity, -Infinity, Number.MIN_VALUE, Number.MAX_VALUE),
);

describe('values in journals', () => {
  it('come back with all their bits', () => {
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        number,
        fc.bigInt({ min: -(2n ** 2100n), max: 2n ** 2100n }),
        fc.float64Array({ maxLength: 80 }),
        fc.constant(new Float64Array(70)),
        fc.string(),
        fc.constantFrom(null, true, false),
        fc.array(tie('tree'), { maxLength: 6 }),
        fc.dictionary(fc.string(), tie('tree'), { maxKeys: 6, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        fc.pre(
          !JSON.stringify(value, (_, v: unknown) => (typeof v === 'bigint' ? 0 : v))?.includes(
            '__proto__',
          ),
        );
        // toEqual tells −0 from 0, and typed arrays from lists.
        expect(unpackValue(packValue(value))).toEqual(value);
      }),
      { numRuns: 300 },
    );
  });

  it('keep the zeros at the end of an array, and its negative zeros', () => {
    const back = unpackValue(packValue(Float64Array.of(1, 0, -0, 0))) as Float64Array;
    expect([...back].map((x) => Object.is(x, -0))).toEqual([false, false, true, false]);
    expect(back).toHaveLength(4);
  });
});
