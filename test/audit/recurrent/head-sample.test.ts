import { describe, expect, it } from 'vitest';
import { emulateRecurrence, findRecurrentModel } from '../../../kernels/index.js';
import { randomValues } from '../../../properties/problems/values.js';
import { auditRecurrent } from '../../../src/audit/index.js';
import type {
  RecurrentProblem,
  RecurrentQuantityName,
  RecurrentResults,
} from '../../../src/problem/index.js';
import { mamba2Problem } from '../../setup/mamba2-problems.js';
import { tensor } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const model = findRecurrentModel('naive-recurrent')!;

/** Gated linear attention of four heads of q and k with two of v each. */
function gated(shape: { batch: number; cuSeqlens?: readonly number[] }) {
  const { batch, cuSeqlens } = shape;
  const random = randomValues(11);
  const tokens = 12;
  const vectors = (heads: number) => tensor('bf16', [batch, tokens, heads, 4], random.normal);
  const problem: RecurrentProblem = {
    family: 'simple-gla',
    q: vectors(4),
    k: vectors(4),
    v: vectors(8),
    g: tensor('fp32', [batch, tokens, 8], () => -random.uniform()),
    ...(cuSeqlens && { cuSeqlens }),
  };
  return { problem, gradientInputs: { dout: vectors(8) } };
}

function resultsOf({ problem, gradientInputs }: ReturnType<typeof gated>): RecurrentResults {
  return emulateRecurrence(problem, model.arithmetic(problem), { gradientInputs });
}

/** The sign of one element turned. */
function damaged(
  results: RecurrentResults,
  name: RecurrentQuantityName,
  index: number,
): RecurrentResults {
  const one = results[name]!;
  const data = one.data.slice();
  const isShort = data.BYTES_PER_ELEMENT === 2;
  if (isShort) data[index] ^= 0x8000;
  else data[index] = -data[index] - 1;
  return { ...results, [name]: { ...one, data } };
}

const shapes = { batch: { batch: 2 }, packed: { batch: 1, cuSeqlens: [0, 5, 12] } };

describe.each(Object.entries(shapes))('a sample of heads, %s', (_name, shape) => {
  const task = gated(shape);
  const { problem, gradientInputs } = task;
  const right = resultsOf(task);
  const parts = shape.batch * 4;
  const audit = (results: RecurrentResults, seed: number) =>
    auditRecurrent(problem, { results, gradientInputs }, { rows: { rows: 12 * 2 * 2, seed } });

  it('is of so many rows, the same by the same seed, and of any head by some seed', () => {
    const { out } = right;
    const drawn = Array.from({ length: 40 }, (_, seed) => audit({ out: out! }, seed).sample!);
    const heads = drawn.map(({ parts: some }) =>
      some.map(({ entry, keyHead }) => entry * 4 + keyHead),
    );
    expect(new Set(heads.flat()).size).toBe(parts);
    for (const [seed, one] of drawn.entries()) {
      expect(one).toMatchObject({ seed, rows: 48, of: parts * 24, ofParts: parts });
      expect(heads[seed]).toHaveLength(2);
    }
    expect(audit(right, 7)).toMatchObject({ sample: drawn[7], verdict: { pass: true } });
  });

  inTurn.each(['out', 'final_state', 'dq', 'dv', 'dg'] as const)(
    'sees what is wrong of %s in its heads alone, where it is',
    (name) => {
      const { [name]: one } = right;
      const { data, shape: sizes } = one!;
      // Of the last row of each head: of tokens the last token, of states the last of its key dimensions.
      const isState = name === 'final_state';
      const heads = isState ? sizes[1] : sizes[2];
      const entries = sizes[0];
      const width = name === 'dg' ? 1 : 4;
      for (let entry = 0; entry < entries; entry++)
        for (let head = 0; head < heads; head++) {
          const index = isState
            ? ((entry * heads + head) * 4 + 3) * width
            : ((entry * 12 + 11) * heads + head) * width;
          expect(index).toBeLessThan(data.length);
          const wrong = damaged({ [name]: one! }, name, index);
          const { verdict, sample, quantities } = audit(wrong, 5);
          const keyHead = name === 'dq' ? head : Math.floor(head / 2);
          const ofPart = (part: { entry: number; keyHead: number }) =>
            part.keyHead === keyHead &&
            (part.entry === entry || (isState && problem.cuSeqlens !== undefined));
          const isSampled = sample!.parts.some(ofPart);
          expect([entry, head, verdict.pass]).toEqual([entry, head, !isSampled]);
          if (!isSampled) continue;
          const [{ elements }] = quantities;
          const row = isState ? { row: 3 } : { token: 11 };
          expect(elements.worst!.at).toMatchObject({ batch: entry, head, ...row });
        }
    },
  );
});

inTurn('is of what Mamba-2 has of each head too', () => {
  const problem = mamba2Problem({ seed: 2, lengths: [9], groups: 3, has: { z: false } });
  const gradientInputs = { dout: tensor('bf16', problem.v.shape, (i) => Math.cos(i)) };
  const results = emulateRecurrence(problem, model.arithmetic(problem), { gradientInputs });
  const rows = { rows: 1, seed: 1 };
  const { quantities, sample, verdict } = auditRecurrent(
    problem,
    { results, gradientInputs },
    { rows },
  );
  expect(verdict.pass).toBe(true);
  expect(sample!.parts).toHaveLength(1);
  const ofA = quantities.find(({ quantity }) => quantity.name === 'dA')!;
  expect(ofA.elements.elements).toBe(2);
  const [{ keyHead }] = sample!.parts;
  for (let head = 0; head < 6; head++) {
    const wrong = damaged(results, 'dA', head);
    const found = auditRecurrent(problem, { results: wrong, gradientInputs }, { rows });
    expect(found.verdict.pass).toBe(Math.floor(head / 2) !== keyHead);
  }
});
