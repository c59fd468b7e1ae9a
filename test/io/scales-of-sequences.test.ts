import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeTensor, type Tensor } from '../../src/formats/index.js';
import {
  openTensorFile,
  problemMetadata,
  readProblem,
  writeProblem,
  writeSafetensors,
  type ProblemSettings,
} from '../../src/io/index.js';
import {
  posedTensors,
  storeProblem,
  type PosedProblem,
  type Problem,
} from '../../src/problem/index.js';
import { patternTensor } from '../problem/packed-problem.js';
import { storedForms } from '../problem/stored-forms.js';
import { sequencesOf } from '../setup/problems.js';
import { temporaryFolder } from './temporary-folder.js';

const folder = temporaryFolder();

/** Inputs of 8 bits: sequences with two heads, some without queries or keys. */
const sequences = fc
  .array(fc.tuple(fc.nat(3), fc.nat(7)), { minLength: 1, maxLength: 4 })
  .filter((all) => all.some(([queries]) => queries > 0) && all.some(([, keys]) => keys > 0));

function eightBits(sizes: readonly (readonly [number, number])[]): Problem {
  const [queries, keys] = [0, 1].map((side) => sizes.reduce((sum, one) => sum + one[side]!, 0));
  return {
    q: patternTensor([1, 4, queries!, 4], 'e4m3'),
    k: patternTensor([1, 2, keys!, 4], 'e4m3'),
    v: patternTensor([1, 2, keys!, 4], 'e4m3'),
    scale: 1,
    causal: false,
    window: null,
    softcap: null,
    sequences: sequencesOf(sizes),
  };
}

/** The same in any form. */
const posed = sequences.chain((sizes) =>
  storedForms(sizes.length, true).map(
    (form) => [storeProblem(eightBits(sizes), form, NaN), form] as const,
  ),
);

/** Where a row of k lies, and of which sequence and head it is. */
interface Place {
  readonly head: number;
  readonly sequence: number;
  readonly group: number;
  readonly slot: number;
}

/** The factors of k as a file has them, and the one of each row. */
interface Factors {
  readonly shape: readonly number[];
  readonly at: (place: Place) => number;
}

function sequenceAt({ sequences = [] }: Problem, row: number): number {
  return sequences.findIndex(({ firstKey, keys }) => row >= firstKey && row < firstKey + keys);
}

function tensorOf(shape: readonly number[]): Tensor {
  const data = Float32Array.from(
    { length: shape.reduce((a, b) => a * b, 1) },
    (_, i) => 1 + i / 64,
  );
  return { format: 'fp32', shape, data };
}

/** What k has to be: its elements, each times the factor of its place. */
function expected(problem: PosedProblem, { shape, at }: Factors): Float64Array {
  const { keys } = problem.stored;
  const { data } = tensorOf(shape);
  const rows = keys.slots.length;
  return decodeTensor(problem.k).map((x, i) => {
    const row = Math.floor(i / 4) % rows;
    const slot = keys.slots[row]!;
    const place = {
      head: Math.floor(i / 4 / rows),
      sequence: sequenceAt(problem, row),
      group: Math.floor(slot / keys.slotsPerGroup),
      slot: slot % keys.slotsPerGroup,
    };
    return x * Number(data[at(place)]);
  });
}

/** Factors whose shape follows from how k lies: groups and slots of it, or 1; heads, or 1. */
function asElements(problem: PosedProblem, groups: number, slots: number, heads: number): Factors {
  const { form, headsFirst } = problem.stored.keys;
  const inner = headsFirst ? [heads, slots] : [slots, heads];
  return {
    shape: [...(form === 'packed' ? [] : [groups]), ...inner, 1],
    at: ({ group, slot, head }) => {
      const [g, s, h] = [Math.min(group, groups - 1), Math.min(slot, slots - 1), head % heads];
      return headsFirst ? (g * heads + h) * slots + s : (g * slots + s) * heads + h;
    },
  };
}

const layouts: Readonly<Record<string, (problem: PosedProblem) => Factors>> = {
  'a number': () => ({ shape: [], at: () => 0 }),
  'a number of rank 1': () => ({ shape: [1], at: () => 0 }),
  'by head': () => ({ shape: [2], at: ({ head }) => head }),
  'by sequence and head': ({ sequences = [] }) => ({
    shape: [sequences.length, 2],
    at: ({ sequence, head }) => sequence * 2 + head,
  }),
  'by page, or padded sequence': (problem) => asElements(problem, problem.stored.keys.groups, 1, 1),
  'by page and head': (problem) => asElements(problem, problem.stored.keys.groups, 1, 2),
  'by token': (problem) => {
    const { groups, slotsPerGroup } = problem.stored.keys;
    return asElements(problem, groups, slotsPerGroup, 1);
  },
  'by token and head': (problem) => {
    const { groups, slotsPerGroup } = problem.stored.keys;
    return asElements(problem, groups, slotsPerGroup, 2);
  },
};

async function reading(path: string, settings: ProblemSettings = {}): Promise<Problem> {
  const file = await openTensorFile(path);
  try {
    return await readProblem(file, settings);
  } finally {
    await file.close();
  }
}

/** The problem from a file that has factors of k beside it. */
async function readWith(problem: PosedProblem, factors: Readonly<Record<string, Tensor>>) {
  const path = folder.at('scaled.safetensors');
  const tensors = { ...posedTensors(problem), ...factors };
  await writeSafetensors(path, tensors, problemMetadata(problem), { durable: false });
  return reading(path);
}

describe('factors of sequences, packed, padded and in pages', () => {
  it.each(Object.keys(layouts))('%s', async (name) => {
    await fc.assert(
      fc.asyncProperty(posed, async ([problem, form]) => {
        const factors = layouts[name]!(problem);
        const read = await readWith(problem, { k_descale: tensorOf(factors.shape) });
        expect(decodeTensor(read.k)).toEqual(expected(problem, factors));
        expect(decodeTensor(read.v)).toEqual(decodeTensor(problem.v));
        // And back: as a kernel is given it, and as it is written.
        const again = folder.at('again.safetensors');
        const stored = storeProblem(read, form, NaN);
        await writeProblem(again, stored, {}, { durable: false });
        expect(decodeTensor((await reading(again)).k)).toEqual(decodeTensor(read.k));
      }),
      { numRuns: 12 },
    );
  });

  it('of shapes that they cannot lie in are refused in one line', async () => {
    const lengths = [
      [2, 7],
      [1, 4],
    ] as const;
    const keys = { kind: 'paged', pageSize: 4 } as const;
    const problem = storeProblem(eightBits(lengths), { queries: { kind: 'packed' }, keys });
    // Three pages of four slots, two heads.
    for (const shape of [[2, 4, 2, 1], [3, 3, 2, 1], [3, 2, 4, 1], [3, 4, 2], [3]])
      await expect(readWith(problem, { k_descale: tensorOf(shape) })).rejects.toThrow(
        /^[^\n]*: k_descale has shape \[[\d, ]+\]; give [^\n]*$/,
      );
    for (const shape of [
      [3, 4, 2, 1],
      [3, 2, 1, 2],
      [1, 4, 1, 4],
    ])
      await expect(readWith(problem, { k_descale: tensorOf(shape) })).resolves.toBeDefined();
  });
});
