import type { Operation, ProductTrace, Trace } from '../trace/index.js';
import { facts, type Identities } from './identities.js';
import { type Hasher, hashWords } from './hasher.js';

/** Products of an instruction that have a bit of a mask each. */
const mostMasked = 32;

/**
 * Whether the elements of D are fused sums as `src/hardware/tensor-core` has them, chained where K is longer: a product with a
 * zero operand takes no part in a sum, a sum that has no other term than C is C, and none is −0. So it is not where an fp8 sum keeps
 * 13 bits of its terms, with scale factors, in fp64 or of integers. Sparse products are left out.
 */
function isFusedSum({ name, format }: Operation, { k, scales }: ProductTrace): boolean {
  const [mnemonic, ofA, ofB] = name.split(' ');
  if (scales !== null || k > mostMasked || !['f32', 'f16'].includes(format.name)) return false;
  if (mnemonic === 'tcgen05.mma') return true;
  const hasHalves = [ofA, ofB].every((operand) => ['bf16', 'fp16', 'tf32'].includes(operand));
  return hasHalves && /^(?:mma\.sync|wgmma)\b/.test(mnemonic);
}

/** The rows of A or of B: their zeros, a bit for each place, and whether all of their elements are finite. */
interface Zeros {
  readonly masks: Uint32Array;
  readonly areFinite: Uint8Array;
  readonly hasAny: boolean;
}

/** Hashes of rows, and which of them are there. */
interface MaskedHashes {
  readonly blocks: Uint32Array;
  readonly done: Uint8Array;
}

type HashRow = (row: number, mask: number, target: Uint32Array) => void;

/** Hashes of the rows of A or of B without the places of a mask. */
class RowHashes {
  readonly #known = new Map<number, MaskedHashes>();
  readonly #rows: number;
  readonly #hash: HashRow;
  #mask: number | null = null;
  #last: MaskedHashes = { blocks: new Uint32Array(0), done: new Uint8Array(0) };

  constructor(rows: number, hash: HashRow) {
    this.#rows = rows;
    this.#hash = hash;
  }

  #take(mask: number): void {
    let known = this.#known.get(mask);
    if (known === undefined) {
      const rows = this.#rows;
      known = { blocks: new Uint32Array(hashWords * rows), done: new Uint8Array(rows) };
      this.#known.set(mask, known);
    }
    [this.#mask, this.#last] = [mask, known];
  }

  /** Blocks among which a row's hash is at its number. */
  of(row: number, mask: number): Uint32Array {
    if (mask !== this.#mask) this.#take(mask);
    const { blocks, done } = this.#last;
    if (done[row] === 0) {
      done[row] = 1;
      this.#hash(row, mask, blocks);
    }
    return blocks;
  }
}

/** Hashes the elements of products of matrices: each from its row of A, its row of B and its element of C. */
export class ProductExpressions {
  readonly #trace: Trace;
  readonly #hasher: Hasher;
  readonly #identities: Identities;

  constructor(trace: Trace, hasher: Hasher, identities: Identities) {
    this.#trace = trace;
    this.#hasher = hasher;
    this.#identities = identities;
  }

  /**
   * Writes the hashes of D.
   *
   * @param blocks those of all values
   * @param header the hash of the operation
   * @param hashKnown writes the hash of a value that has its bits for all inputs
   */
  hash(
    blocks: Uint32Array,
    product: ProductTrace,
    header: Uint32Array,
    hashKnown: (value: number) => void,
  ): void {
    const { m, n, k, c, isNegated, scales, first } = product;
    const [hasher, identities] = [this.#hasher, this.#identities];
    const isFused = isFusedSum(this.#trace.operationOf(first), product);
    const [left, right] = this.#rowHashes(blocks, product);
    const zeros = isFused ? this.#zeros(product) : null;
    const all = k === mostMasked ? -1 : 2 ** k - 1;
    for (let i = 0; i < m * n; i++) {
      const [row, column, value] = [Math.floor(i / n), i % n, first + i];
      const mask = zeros === null ? 0 : maskAt(zeros, row, column);
      const start = c === null || this.#isNothing(c[i], isFused) ? null : c[i];
      if (mask !== 0 && mask === all && this.#keep(blocks, value, start, hashKnown)) continue;
      if (isFused) identities.of[value] = facts.notMinusZero;
      // Before the hash is begun: rows are hashed by the same hasher.
      const [ofRow, ofColumn] = [left.of(row, mask), right.of(column, mask)];
      hasher
        .start()
        .addFrom(header, 0)
        .add(k, isNegated ? 1 : 0, scales?.block ?? 0, 0)
        .addFrom(ofRow, row)
        .addFrom(ofColumn, column);
      if (start !== null) hasher.addFrom(blocks, start);
      hasher.end(blocks, value);
    }
  }

  /** Whether a sum that starts from a value is one that starts from nothing: +0, and a zero that takes no part. */
  #isNothing(value: number, isFused: boolean): boolean {
    const isZero = this.#identities.isZero(value);
    return isZero && (isFused || (this.#trace.bits[value] === 0 && this.#trace.high[value] === 0));
  }

  /** A sum without products: +0, or C unless that may be −0. Whether it is one of these. */
  #keep(
    blocks: Uint32Array,
    value: number,
    start: number | null,
    hashKnown: (value: number) => void,
  ): boolean {
    const identities = this.#identities;
    if (start === null || identities.isKnown(start)) {
      identities.know(value);
      hashKnown(value);
    } else if (identities.isNeverMinusZero(start) && identities.isFinite(start)) {
      blocks.copyWithin(hashWords * value, hashWords * start, hashWords * (start + 1));
      identities.of[value] = identities.of[start];
    } else return false;
    return true;
  }

  /** The zeros of A and of B; null where there are none. */
  #zeros({ m, n, k, a, b }: ProductTrace): readonly [Zeros, Zeros] | null {
    const identities = this.#identities;
    const zerosOf = (values: Uint32Array, rows: number) => {
      const masks = new Uint32Array(rows);
      let hasAny = false;
      for (let i = 0; i < values.length; i++)
        if (identities.isZero(values[i])) {
          masks[Math.floor(i / k)] |= 2 ** (i % k);
          hasAny = true;
        }
      return { masks, hasAny };
    };
    const finite = (values: Uint32Array, rows: number) => {
      const areFinite = new Uint8Array(rows).fill(1);
      for (let i = 0; i < values.length; i++)
        if (!identities.isFinite(values[i])) areFinite[Math.floor(i / k)] = 0;
      return areFinite;
    };
    const [ofA, ofB] = [zerosOf(a, m), zerosOf(b, n)];
    if (!ofA.hasAny && !ofB.hasAny) return null;
    return [
      { ...ofA, areFinite: finite(a, m) },
      { ...ofB, areFinite: finite(b, n) },
    ];
  }

  #rowHashes(
    blocks: Uint32Array,
    { m, n, k, a, b, scales }: ProductTrace,
  ): readonly [RowHashes, RowHashes] {
    const hasher = this.#hasher;
    const rowsOf = (values: Uint32Array, rows: number, factors: Uint32Array | undefined) =>
      new RowHashes(rows, (row, mask, target) => {
        hasher.start();
        for (let i = 0; i < k; i++)
          if (mask !== 0 && (mask & (2 ** i)) !== 0) hasher.add(0, 0, 0, 0);
          else hasher.addFrom(blocks, values[row * k + i]);
        const perRow = factors === undefined ? 0 : factors.length / rows;
        for (let i = row * perRow; i < (row + 1) * perRow; i++) hasher.addFrom(blocks, factors![i]);
        hasher.end(target, row);
      });
    return [rowsOf(a, m, scales?.a), rowsOf(b, n, scales?.b)];
  }
}

/** The places of zero products: a zero of A times a number of B, or the reverse. An infinity or NaN opposite keeps all. */
function maskAt([ofA, ofB]: readonly [Zeros, Zeros], row: number, column: number): number {
  return (
    (ofB.areFinite[column] === 1 ? ofA.masks[row] : 0) |
    (ofA.areFinite[row] === 1 ? ofB.masks[column] : 0)
  );
}
