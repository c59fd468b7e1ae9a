import { decodeTensor } from '../../../src/formats/index.js';
import type { ChunkParts, ChunkPlace } from '../chunk-parts.js';
import { dot, product } from '../matrix/matrices.js';
import { carryFaults } from './carry-faults.js';
import { at, chunkFault } from './chunk-change.js';
import type { FaultSetting, RecurrentFault } from './fault.js';
import { hasDecay, isDelta } from './tensors.js';

const always = () => true;
/** Whether a chunk has more than 16 tokens, a block of the inverse. */
const hasBlocks = (setting: FaultSetting) =>
  isDelta(setting) && setting.chunk > 16 && setting.problem.q.shape[1] > 16;

/** Sets elements of A or P, of rows s and columns j, from what they are. */
function mapMatrix(
  matrix: Float64Array,
  n: number,
  map: (value: number, s: number, j: number) => number,
): void {
  for (let i = 0; i < n * n; i++) matrix[i] = map(matrix[i], Math.floor(i / n), i % n);
}

/** The dot product of rows of two matrices. */
const rowDot = (a: Float64Array, s: number, b: Float64Array, j: number, dim: number) =>
  dot(a, s * dim, b, j * dim, dim);

/** T of A with its diagonal, (I + A + diag(β k·k))^−1. */
function invertWithDiagonal({ triangle, inverse }: ChunkParts, { inputs }: ChunkPlace): void {
  const { k, beta, count: n } = inputs;
  const dim = k.length / beta.length;
  inverse.fill(0, 0, n * n);
  for (let s = 0; s < n; s++) {
    inverse[s * n + s] = 1;
    for (let j = 0; j < s; j++)
      for (let c = 0; c <= j; c++) inverse[s * n + c] -= triangle[s * n + j] * inverse[j * n + c];
    const diagonal = 1 + beta[s] * rowDot(k, s, k, s, dim);
    for (let c = 0; c <= s; c++) inverse[s * n + c] /= diagonal;
  }
}

/** T as the first terms of its series, I − A + A² …. */
function cutSeries({ triangle, inverse }: ChunkParts, n: number, terms: number): void {
  const power = triangle.slice(0, n * n);
  mapMatrix(inverse, n, (_, s, j) => (s === j ? 1 : 0));
  for (let term = 1; term < terms; term++) {
    for (let i = 0; i < n * n; i++) inverse[i] += term % 2 === 1 ? -power[i] : power[i];
    product(power, power.slice(), triangle, [n, n, n]);
  }
}

const block = (row: number) => Math.floor(row / 16);

/** Faults of A and of its inverse. */
const inverseFaults: readonly RecurrentFault[] = [
  chunkFault(
    'triangle-with-diagonal',
    'the triangle that is inverted has its diagonal, of each token with itself',
    isDelta,
    () => at('inverse', invertWithDiagonal),
  ),
  chunkFault(
    'triangle-missing',
    'tokens of a chunk do not see what the others of it have written',
    isDelta,
    () => at('products', ({ triangle }) => triangle.fill(0)),
  ),
  chunkFault(
    'triangle-not-decayed',
    'the triangle that is inverted is not decayed',
    (setting) => isDelta(setting) && hasDecay(setting),
    () =>
      at('products', ({ triangle }, { inputs: { k, beta, count: n } }) => {
        const dim = k.length / beta.length;
        mapMatrix(triangle, n, (_, s, j) => (j < s ? beta[s] * rowDot(k, s, k, j, dim) : 0));
      }),
  ),
  chunkFault(
    'triangle-without-beta',
    'the triangle that is inverted lacks the write strength',
    ({ problem }) => problem.beta !== undefined && decodeTensor(problem.beta).every((b) => b !== 0),
    () =>
      at('products', ({ triangle }, { inputs: { beta, count: n } }) =>
        mapMatrix(triangle, n, (x, s) => x / beta[s]),
      ),
  ),
  ...([2, 3] as const).map((terms) =>
    chunkFault(
      `inverse-of-${terms}-terms`,
      `the inverse is cut off after ${terms} terms of its series`,
      isDelta,
      () => at('inverse', (parts, { inputs }) => cutSeries(parts, inputs.count, terms)),
    ),
  ),
  chunkFault(
    'inverse-block-missing',
    'the second 16 tokens of a chunk do not see one another in the inverse',
    hasBlocks,
    () =>
      at('products', ({ triangle }, { inputs }) =>
        mapMatrix(triangle, inputs.count, (x, s, j) => (block(s) === 1 && block(j) === 1 ? 0 : x)),
      ),
  ),
  chunkFault(
    'inverse-blocks-apart',
    'blocks of 16 tokens are inverted, and not joined',
    hasBlocks,
    () =>
      at('products', ({ triangle }, { inputs }) =>
        mapMatrix(triangle, inputs.count, (x, s, j) => (block(s) === block(j) ? x : 0)),
      ),
  ),
];

/** Faults of P. */
const intraFaults: readonly RecurrentFault[] = [
  chunkFault('intra-missing', 'outputs lack what their own chunk writes', always, () =>
    at('products', ({ intra }) => intra.fill(0)),
  ),
  chunkFault('intra-not-masked', 'outputs see later tokens of their chunk', always, () =>
    at('products', ({ intra }, { inputs: { q, k, beta, count: n } }) => {
      const dim = k.length / beta.length;
      mapMatrix(intra, n, (x, s, j) => (j > s ? rowDot(q, s, k, j, dim) : x));
    }),
  ),
  chunkFault(
    'intra-not-decayed',
    'what a chunk writes is not decayed in its own outputs',
    hasDecay,
    () =>
      at('products', ({ intra }, { inputs: { q, k, beta, count: n } }) => {
        const dim = k.length / beta.length;
        mapMatrix(intra, n, (_, s, j) => (j <= s ? rowDot(q, s, k, j, dim) : 0));
      }),
  ),
  chunkFault(
    'intra-not-scaled',
    'what a chunk writes is not scaled in its own outputs',
    always,
    ({ problem }) => {
      const scale = problem.scale ?? 1 / Math.sqrt(problem.q.shape[3]);
      return at('products', ({ intra }, { inputs: { count: n } }) =>
        mapMatrix(intra, n, (x) => x / scale),
      );
    },
  ),
];

/** Faults of the chunked form. */
export const chunkFaults: readonly RecurrentFault[] = [
  ...inverseFaults,
  ...intraFaults,
  ...carryFaults,
];
