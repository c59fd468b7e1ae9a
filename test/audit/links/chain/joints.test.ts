import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkJoint, joints, type DumpedTensor, type Joint } from '../../../../src/audit/index.js';
import { scaled } from '../../../setup/effort.js';

const names = { writer: 'write', reader: 'attend' };

function jointOf(wrote: string): Joint {
  const found = joints.find((one) => one.wrote === wrote);
  if (found === undefined) throw new Error(`nothing hands on ${wrote}`);
  return found;
}

function check(of: Joint, wrote: DumpedTensor, read: DumpedTensor, before?: DumpedTensor) {
  return checkJoint(of, names, { wrote, read, before: before ?? null });
}

const cache = fc
  .uint8Array({ minLength: 4 * 8 * 2 * 4, maxLength: 4 * 8 * 2 * 4 })
  .map((data): DumpedTensor => ({ shape: [4, 8, 2, 4], dtype: 'F8_E4M3', data }));

describe('what one link hands to another', () => {
  it('is right if every bit is equal, and a change of any byte is found in its slot', () => {
    fc.assert(
      fc.property(
        cache,
        fc.nat(4 * 8 * 2 * 4 - 1),
        fc.integer({ min: 1, max: 255 }),
        (x, at, by) => {
          const of = jointOf('key_cache');
          expect(check(of, x, x)).toMatchObject({ wrong: 0, checked: 32, unjudged: null });
          const other = { ...x, data: x.data.map((byte, i) => (i === at ? byte ^ by : byte)) };
          const { wrong, statement } = check(of, x, other);
          expect(wrong).toBe(1);
          expect(statement).toContain(`slot ${Math.floor(at / 8)}`);
        },
      ),
      { numRuns: scaled(50) },
    );
  });

  it('is of lists the same keys in any order, whatever the width of their integers', () => {
    const lists = fc.uniqueArray(fc.nat(30), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(lists, fc.nat(), (keys, at) => {
        const of = jointOf('indices');
        const tensor = (own: readonly number[]): DumpedTensor => ({
          shape: [1, 1, own.length],
          dtype: 'I32',
          data: Int32Array.from(own),
        });
        const wide = {
          ...tensor([...keys].reverse()),
          shape: [1, 1, 1, keys.length],
          dtype: 'I64',
        };
        expect(check(of, tensor(keys), wide).wrong).toBe(0);
        const place = at % keys.length;
        const other = tensor(keys.map((key, i) => (i === place ? 31 : key)));
        const { wrong, statement } = check(of, tensor(keys), other);
        expect(wrong).toBe(1);
        expect(statement).toContain('sequence 0, query 0');
        // An entry that is listed twice in place of another is no permutation.
        const twice = tensor(
          keys.map((key, i) => (i === place ? keys[(place + 1) % keys.length] : key)),
        );
        expect(check(of, tensor(keys), twice).wrong).toBe(1);
      }),
      { numRuns: scaled(50) },
    );
  });

  it('is named as before the write only if all that differs is', () => {
    const of = jointOf('value_cache');
    const tensor = (data: Uint8Array): DumpedTensor => ({
      shape: [1, 4, 1, 1],
      dtype: 'U8',
      data,
    });
    const [before, wrote] = [Uint8Array.of(1, 2, 3, 4), Uint8Array.of(1, 9, 3, 8)].map(tensor);
    const stale = check(of, wrote, before, before).statement;
    expect(stale).toBe(
      'attend reads a cache of values as before the write of write: slot 1; slot 3',
    );
    const mixed = check(of, wrote, tensor(Uint8Array.of(1, 2, 3, 7)), before).statement;
    expect(mixed).toBe('attend has a cache of values other than what write left: slot 1; slot 3');
  });

  it('is not compared in other shapes, and that is said', () => {
    const of = jointOf('out_partial');
    const tensor = (shape: readonly number[]): DumpedTensor => ({
      shape,
      dtype: 'F32',
      data: new Uint8Array(4 * 6),
    });
    expect(check(of, tensor([2, 3]), tensor([3, 2])).unjudged).toBe(
      'write wrote F32 [2, 3] and attend read F32 [3, 2], which are not compared',
    );
  });
});
