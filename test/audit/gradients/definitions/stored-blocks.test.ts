import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storedFaults } from '../../../../src/audit/gradients/diagnosis/stored/stored-faults.js';
import { placeOfKeys, placeOfRows } from '../../../../src/audit/rows/index.js';
import { problemShape } from '../../../../src/problem/index.js';
import { filledProblem } from '../../../setup/problems.js';
import { bareFailure, drawGradient, type BareGradient, type Named } from './bare-failure.js';
import { drawFrom } from './random-pairs.js';

const [batch, heads, queries, keys, dim] = [2, 2, 16, 35, 20] as const;
const problem = filledProblem({ batch, heads, queries, keys, dim }, () => 1);
const layout = { ...problem, shape: problemShape(problem) };

type Kind = 'own' | 'turned' | 'nearly' | 'even';

/** The kinds of blocks by their number, in order of heads, rows and columns. */
interface Blocks {
  readonly name: Named;
  readonly size: number;
  readonly kinds: readonly Kind[];
}

/** The blocks of a gradient: those that fit. */
function blocksOf({ name, size, kinds }: Blocks) {
  const rows = name === 'dq' ? queries : keys;
  const [down, across] = [Math.floor(rows / size), Math.floor(dim / size)];
  return Array.from({ length: batch * heads * down * across }, (_, i) => ({
    kind: kinds[i % kinds.length],
    head: Math.floor(i / (down * across)),
    top: (Math.floor(i / across) % down) * size,
    left: (i % across) * size,
  }));
}

/** A gradient whose blocks are as they are, transposed, or so but for an element, or of one number. */
function gradientOf(blocks: Blocks) {
  const { name, size } = blocks;
  const rows = name === 'dq' ? queries : keys;
  const one = drawGradient(problem, name, drawFrom(7));
  // Sums of these are exact, and elements that change places in a block differ by 1 and more.
  const exact = one.exact.map((_, i) => 1 + ((i * 7) % 29));
  const total = exact.map((_, i) => 1 / (i % 3 === 0 ? 8 : 16));
  const [values, predicted] = [exact.slice(), exact.slice()];
  for (const { kind, head, top, left } of blocksOf(blocks)) {
    if (kind === 'own') continue;
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++) {
        const at = (i: number, j: number) => (head * rows + top + i) * dim + left + j;
        const [to, from] = [at(i, j), at(j, i)];
        const most = Math.max(total[to], total[from]);
        if (kind === 'even') {
          values[to] = 3 + total[to];
          predicted[to] = 3;
          exact[to] = 3;
          continue;
        }
        values[to] = exact[from] + (kind === 'nearly' && i === 0 && j === 1 ? 2 : 1) * most;
        if (kind === 'turned') predicted[to] = exact[from];
      }
  }
  return { gradient: { ...one, exact, total, values } satisfies BareGradient, predicted };
}

const said = (name: Named, gradient: BareGradient) => [
  ...storedFaults(bareFailure(problem, { [name]: gradient }, [name])),
];

const prose = { dq: 'dQ', dk: 'dK', dv: 'dV' } as const;
const blocks = fc.record({
  name: fc.constantFrom<Named>('dq', 'dk', 'dv'),
  size: fc.constantFrom(4, 8, 16),
  kinds: fc.array(fc.constantFrom<Kind>('own', 'own', 'own', 'turned', 'nearly', 'even'), {
    minLength: 16,
    maxLength: 23,
  }),
});

describe('blocks with rows for columns', () => {
  it('are those that lie at multiples of their size, whose elements are all another', () => {
    fc.assert(
      fc.property(blocks, (drawn) => {
        const { name, size } = drawn;
        const { gradient, predicted } = gradientOf(drawn);
        const turned = blocksOf(drawn).filter(({ kind }) => kind === 'turned');
        const square = `${size} × ${size}`;
        const found = said(name, gradient).filter(({ sentence }) => sentence.includes(square));
        expect(found).toHaveLength(turned.length === 0 ? 0 : 1);
        for (const one of found) {
          expect(one.id).toBe('block-transposed');
          expect(one.predicted).toEqual({ [name]: predicted });
          const { head, top, left } = turned[0];
          const [of, rows, placed] =
            name === 'dq'
              ? (['queries', queries, placeOfRows] as const)
              : (['keys', keys, placeOfKeys] as const);
          const entry = head < heads ? '' : `batch ${Math.floor(head / heads)}, `;
          const where = `${of} ${top} to ${top + size - 1}, columns ${left} to ${left + size - 1} of ${entry}head ${head % heads}`;
          expect(one.sentence).toBe(
            turned.length === 1
              ? `a block of ${square} of ${prose[name]} is transposed: ${where}`
              : `${turned.length} blocks of ${square} of ${prose[name]} are transposed: first ${where}`,
          );
          const within = turned.flatMap(({ head, top }) =>
            Array.from({ length: size }, (_, i) => head * rows + top + i),
          );
          expect(one.place).toEqual(placed(within, layout));
        }
      }),
      { numRuns: 30 },
    );
  });

  it.each([1, 2])('are told as one or as several: %d', (count) => {
    const kinds = Array.from({ length: 16 }, (_, i): Kind => (i < count ? 'turned' : 'own'));
    const { gradient } = gradientOf({ name: 'dq', size: 8, kinds });
    const { sentence } = said('dq', gradient).find(({ id }) => id === 'block-transposed')!;
    expect(sentence).toBe(
      count === 1
        ? 'a block of 8 × 8 of dQ is transposed: queries 0 to 7, columns 0 to 7 of head 0'
        : '2 blocks of 8 × 8 of dQ are transposed: first queries 0 to 7, columns 0 to 7 of head 0',
    );
  });
});

describe('a gradient that is stored with the stride of another', () => {
  it.each<[Named, number, number]>([
    ['dq', 3, 5],
    ['dk', 5, 2],
    ['dv', 3, 5],
    ['dv', 5, 2],
  ])('has in every head its elements that far apart: %s', (name, qkDim, vDim) => {
    const frame = { batch, heads, queries: 4, keys: 6, dim: qkDim, vDim };
    const made = filledProblem(frame, () => 1);
    const gradient = drawGradient(made, name, drawFrom(5));
    const failed = bareFailure(made, { [name]: gradient }, [name]);
    const { sentence, predicted, sources } = [...storedFaults(failed)].at(-1)!;
    const [rows, own, other] = [
      name === 'dq' ? 4 : 6,
      name === 'dv' ? vDim : qkDim,
      name === 'dv' ? qkDim : vDim,
    ];
    expect(sentence).toBe(
      `${prose[name]} is stored with the stride of ${name === 'dv' ? 'dK' : 'dV'}, ${other} in the place of ${own}`,
    );
    for (let head = 0; head < batch * heads; head++)
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < own; column++) {
          const at = (head * rows + row) * own + column;
          const inHead = row * other + column;
          const isInside = inHead < rows * own;
          const from = head * rows * own + inHead;
          expect(predicted[name]![at]).toBe(isInside ? gradient.exact[from] : 0);
          expect(sources![name]![at]).toBe(isInside ? from : at);
        }
  });

  it('is not told where both have one, or two gradients fail', () => {
    const dq = drawGradient(problem, 'dq', drawFrom(5));
    expect(said('dq', dq)).toEqual([]);
    const made = filledProblem({ queries: 4, keys: 6, dim: 3, vDim: 2 }, () => 1);
    const two = {
      dq: drawGradient(made, 'dq', drawFrom(5)),
      dk: drawGradient(made, 'dk', drawFrom(5)),
    };
    expect([...storedFaults(bareFailure(made, two, ['dq', 'dk']))]).toEqual([]);
    expect([...storedFaults(bareFailure(made, two, ['dk']))]).toHaveLength(1);
  });
});
