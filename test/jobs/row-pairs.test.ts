import { describe, expect, it } from 'vitest';
import type { LaunchTensor } from '../../src/ptx/launch/index.js';
import { namesByContents } from '../../src/jobs/certify/input-names.js';
import { readContents } from '../../src/jobs/certify/row-contents.js';
import { pairByContents, type KnownRows } from '../../src/jobs/certify/row-pairs.js';
import type { InputPlaces } from '../../src/jobs/launch/contract-places.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { valueFormat } from '../../src/meaning/trace/index.js';
import { filledProblem, uniformNumbers } from '../setup/problems.js';

const roles = ['q', 'k', 'v'] as const;
const [keys, dim] = [5, 4];

/** A sequence of one head. */
function sequence(seed: number, queries: number = keys): Problem {
  return { ...filledProblem({ queries, keys, dim }, uniformNumbers(seed)), causal: true };
}

/** Sequences of one size as a batch. */
function batch(problems: readonly Problem[]): Problem {
  const joined = (role: 'q' | 'k' | 'v') => {
    const { shape } = problems[0][role];
    const data = problems.flatMap((one) => [...(one[role].data as Uint16Array)]);
    return {
      ...problems[0][role],
      shape: [problems.length, ...shape.slice(-3)],
      data: Uint16Array.from(data),
    };
  };
  return { ...problems[0], q: joined('q'), k: joined('k'), v: joined('v') };
}

/** A launch of a problem, whose tensors lie backwards where that is asked for. */
function launch(problem: Problem, isReversed = false) {
  const tensors = new Map<string, LaunchTensor>();
  const placed = roles.map((role): InputPlaces => {
    const data = [...(problem[role].data as Uint16Array)];
    const { length } = data;
    const bytes = new Uint8Array(Uint16Array.from(isReversed ? data.reverse() : data).buffer);
    const { shape } = problem[role];
    tensors.set(role, { name: role, dtype: 'BF16', elementBits: 16, shape, bytes });
    const place = (i: number) => (isReversed ? length - 1 - i : i);
    return { role, tensor: role, places: Float64Array.from({ length }, (_, i) => place(i)) };
  });
  const contents = readContents(problem, placed, tensors);
  const { queries } = problemShape(problem);
  const elementOf = (of: number, _: number, row: number) => of * queries + row;
  const { batch, heads } = problemShape(problem);
  const shape = [batch, heads, queries, 1] as const;
  const outputs = [{ name: 'lse', tensor: 'lse', shape, elementOf }];
  const known: KnownRows = {
    contract: { kind: 'attention', problem, outputs, given: [] },
    contents,
  };
  const inputs = roles.map((tensor) => ({ tensor, format: valueFormat('bf16')! }));
  return { known, placed, names: namesByContents(inputs, placed, contents) };
}

function pairs(here: KnownRows, there: KnownRows) {
  const { pairs: found, unpaired } = pairByContents(here, there, 'lse');
  return { found: found.map((pair) => [pair.here[0], pair.there[0]]), unpaired };
}

describe('rows of two launches', () => {
  const [one, other] = [sequence(1), sequence(2)];

  it('are the same behind another sequence, and with other strides', () => {
    const there = launch(batch([other, one]), true);
    const here = launch(one);
    expect(pairs(here.known, there.known)).toEqual({
      found: [0, 1, 2, 3, 4].map((row) => [row, keys + row]),
      unpaired: 0,
    });
    // Elements have one name exactly if they are the same element of the sequence.
    roles.forEach((_, input) => {
      const { places } = there.placed[input];
      const half = places.length / 2;
      const mine = Array.from({ length: half }, (__, i) =>
        here.names.name(input, here.placed[input].places[i]).join(),
      );
      const theirs = Array.from(places, (place) => there.names.name(input, place).join());
      expect(theirs.slice(half)).toEqual(mine);
      expect(new Set([...mine, ...theirs]).size).toBe(2 * half);
    });
  });

  it('are the same in a chunk of the last queries, which sees the same keys', () => {
    const q = one.q.data as Uint16Array;
    const chunk = { ...one, q: { ...one.q, shape: [1, 1, 2, dim], data: q.slice(3 * dim) } };
    expect(pairs(launch(one).known, launch(chunk).known)).toEqual({
      found: [
        [3, 0],
        [4, 1],
      ],
      unpaired: 3,
    });
  });

  it.each(roles)('are others where the last row of %s has another bit', (role) => {
    const data = (one[role].data as Uint16Array).slice();
    data[data.length - 1] ^= 1;
    const changed = { ...one, [role]: { ...one[role], data } };
    const { found, unpaired } = pairs(launch(one).known, launch(changed).known);
    expect(found.map(([row]) => row)).toEqual([0, 1, 2, 3]);
    expect(unpaired).toBe(1);
  });

  it('are others where two keys have changed places', () => {
    const swapped = (role: 'k' | 'v') => {
      const rows = [...(one[role].data as Uint16Array)];
      return {
        ...one[role],
        data: Uint16Array.from([
          ...rows.slice(dim, 2 * dim),
          ...rows.slice(0, dim),
          ...rows.slice(2 * dim),
        ]),
      };
    };
    const changed = { ...one, k: swapped('k'), v: swapped('v') };
    expect(() => pairs(launch(one).known, launch(changed).known)).toThrow(/no row of lse/);
  });
});
