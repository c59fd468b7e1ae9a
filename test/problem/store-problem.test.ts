import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeToFloat64, formats, type FormatName } from '../../src/formats/index.js';
import {
  cacheName,
  gatherRows,
  halfOfPages,
  posedTensors,
  storedOf,
  storeProblem,
  type Problem,
  type StoredForm,
  type Tensor,
} from '../../src/problem/index.js';
import { patternTensor, packedProblem } from './packed-problem.js';
import { storedForms } from './stored-forms.js';

/** Sequences of so many queries and keys, and a form of a problem of them. */
const posed = fc
  .array(fc.tuple(fc.nat(4), fc.nat(7)), { minLength: 1, maxLength: 4 })
  .chain((sizes) => fc.tuple(fc.constant(sizes), storedForms(sizes.length, true)));

function patterns({ data }: Tensor): number[] {
  return [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)];
}

describe('storeProblem', () => {
  it('keeps every row in a slot of its own, in any form', () => {
    fc.assert(
      fc.property(
        posed,
        fc.constantFrom<FormatName>('bf16', 'fp64', 'e4m3'),
        ([sizes, form], format) => {
          const problem = packedProblem(sizes, format);
          const { stored } = storeProblem(problem, form, NaN);
          for (const [name, rows] of [
            ['q', stored.queries],
            ['k', stored.keys],
            ['v', stored.keys],
          ] as const) {
            const gathered =
              name !== 'q' && cacheName in stored.tensors
                ? gatherRows(stored.tensors[cacheName] as Tensor, halfOfPages(rows, name))
                : gatherRows(stored.tensors[name] as Tensor, rows);
            expect(gathered.shape).toEqual(problem[name].shape);
            expect(patterns(gathered)).toEqual(patterns(problem[name]));
          }
        },
      ),
    );
  });

  it('fills all other slots', () => {
    fc.assert(
      fc.property(posed, ([sizes, form]) => {
        const problem = packedProblem(sizes, 'bf16');
        const { stored } = storeProblem(problem, form, NaN);
        const q = stored.tensors.q as Tensor;
        const values = decodeToFloat64(q.data, formats.bf16);
        const used = problem.q.data.length;
        expect(values.filter(Number.isNaN).length).toBe(values.length - used);
        if (form.keys.kind === 'paged' && form.keys.shared === true) return;
        const { k, v, [cacheName]: both } = stored.tensors as Record<string, Tensor | undefined>;
        const held = [k, v, both].flatMap((tensor) =>
          tensor === undefined ? [] : [...decodeToFloat64(tensor.data, formats.bf16)],
        );
        const [ofK, ofV] = [problem.k.data.length, problem.v.data.length];
        expect(held.filter(Number.isNaN).length).toBe(held.length - ofK - ofV);
      }),
    );
  });

  it('keeps pages of equal bits once where they are shared', () => {
    const problem = packedProblem(
      [
        [1, 8],
        [1, 8],
      ],
      'bf16',
    );
    const same: Problem = {
      ...problem,
      k: patternTensor([1, 1, 16, 2], 'bf16', 8 * 2),
      v: patternTensor([1, 1, 16, 2], 'bf16', 8 * 2),
    };
    const form = (shared: boolean): StoredForm => ({
      queries: { kind: 'packed' },
      keys: { kind: 'paged', pageSize: 4, shared },
    });
    expect(storeProblem(same, form(false)).stored.keys.groups).toBe(4);
    expect(storeProblem(same, form(true)).stored.keys.groups).toBe(2);
  });

  it('is forgotten by a problem that was changed', () => {
    const problem = storeProblem(packedProblem([[2, 3]], 'bf16'), {
      queries: { kind: 'padded', spare: 2 },
      keys: { kind: 'paged', pageSize: 2 },
    });
    expect(storedOf(problem)).toBe(problem.stored);
    expect(storedOf({ ...problem, scale: 2 })).toBe(problem.stored);
    const changed = { ...problem, k: patternTensor(problem.k.shape, 'bf16', 3) };
    expect(storedOf(changed)).toBeNull();
    expect(Object.keys(posedTensors(changed))).toContain('cu_seqlens_k');
  });
});
