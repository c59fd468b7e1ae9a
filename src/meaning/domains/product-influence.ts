import type { ProductTrace, Trace } from '../trace/index.js';
import { areAlike, isZero, type Influences } from './influences.js';
import { Keys } from './keys.js';
import { emptySet } from './label-sets.js';

/** A row of A or of B: what reaches its elements, and which of them are zeros. Bits of words stand for elements along k. */
interface Row {
  /** The different sets that reach its elements with weight, each with the elements that it reaches. */
  readonly sets: readonly { readonly set: number; readonly elements: Uint32Array }[];
  /** All that reaches its elements in the structure. */
  readonly structure: number;
  /** Zeros that nothing reaches with weight, and other ones. */
  readonly settled: Uint32Array;
  readonly varying: Uint32Array;
  /** What reaches its factors, with weight and in the structure. */
  readonly scales: readonly [withWeight: number, inStructure: number];
}

/** The rows of a matrix, equal ones once. */
interface Rows {
  /** The number of each row among those that differ. */
  readonly kinds: Uint32Array;
  /** The number of each row's pattern of zeros. */
  readonly zeros: Uint32Array;
  readonly rows: readonly Row[];
  /** For each pattern of zeros a row that has it. */
  readonly patterns: readonly Row[];
}

/** The kinds of rows, and of their zeros. */
type Lines = Pick<Rows, 'kinds' | 'zeros'>;

/** What rows bring to elements of D, by the kind of the row and the other row's pattern of zeros. */
interface Shares {
  readonly withWeight: Uint32Array;
  readonly inStructure: Uint32Array;
  readonly patterns: number;
}

/** How a factor swallows the other one: not at all, as a zero that nothing reaches with weight, or as another zero. */
const [noZero, settledZero, varyingZero] = [0, 1, 2] as const;

/**
 * What reaches the products of matrices. What a row of A brings to an element of D depends on the zeros of B's row alone, and the
 * other way round, so that it is found once for rows that are alike.
 *
 * A factor that is zero swallows the other one, since a product with a zero takes no part in the sum, however large the other
 * factor (src/hardware/tensor-core). Factors of blocks always count: they place a sum of products even where it is zero.
 */
export class ProductInfluence {
  readonly #trace: Trace;
  readonly #influences: Influences;

  constructor(trace: Trace, influences: Influences) {
    this.#trace = trace;
    this.#influences = influences;
  }

  /** The union of some values' sets, with weight and in the structure. */
  #unionOf(values: Uint32Array): readonly [number, number] {
    const { sets, withWeight, inStructure } = this.#influences;
    let [weight, structure]: [number, number] = [emptySet, emptySet];
    for (const value of values) {
      weight = sets.union(weight, withWeight[value]);
      structure = sets.union(structure, inStructure[value]);
    }
    return [weight, structure];
  }

  #row(values: Uint32Array, kinds: Uint32Array, scales: Row['scales']): Row {
    const { withWeight } = this.#influences;
    const words = (values.length + 31) >>> 5;
    const [settled, varying] = [new Uint32Array(words), new Uint32Array(words)];
    const elementsOf = new Map<number, Uint32Array>();
    let last = -1;
    let elements: Uint32Array = settled;
    for (let i = 0; i < values.length; i++) {
      const bit = 1 << (i & 31);
      if (kinds[i] === settledZero) settled[i >>> 5] |= bit;
      else if (kinds[i] === varyingZero) varying[i >>> 5] |= bit;
      const set = withWeight[values[i]];
      if (set !== last) {
        last = set;
        elements = elementsOf.get(set) ?? new Uint32Array(words);
        elementsOf.set(set, elements);
      }
      elements[i >>> 5] |= bit;
    }
    return {
      sets: [...elementsOf].map(([set, own]) => ({ set, elements: own })),
      structure: this.#unionOf(values)[1],
      settled,
      varying,
      scales,
    };
  }

  /** What rows bring to D where no element of either matrix is a zero; null where one of this matrix is. */
  #wholeShares(values: Uint32Array, k: number, scales: Uint32Array | null): Shares | null {
    const trace = this.#trace;
    const { sets } = this.#influences;
    for (let i = 0; i < values.length; i++) if (isZero(trace, values[i])) return null;
    const count = values.length / k;
    const perRow = scales === null ? 0 : scales.length / count;
    const shares = {
      withWeight: new Uint32Array(count),
      inStructure: new Uint32Array(count),
      patterns: 1,
    };
    for (let i = 0; i < count; i++) {
      const isLikeLast =
        scales === null && i > 0 && areAlike(this.#influences, values, [(i - 1) * k, i * k], k);
      let [weight, structure] = isLikeLast
        ? [shares.withWeight[i - 1], shares.inStructure[i - 1]]
        : this.#unionOf(values.subarray(i * k, (i + 1) * k));
      if (scales !== null) {
        const factors = this.#unionOf(scales.subarray(i * perRow, (i + 1) * perRow));
        weight = sets.union(weight, factors[0]);
        structure = sets.union(structure, factors[1]);
      }
      shares.withWeight[i] = weight;
      shares.inStructure[i] = structure;
    }
    return shares;
  }

  #rows(values: Uint32Array, k: number, scales: Uint32Array | null): Rows {
    const trace = this.#trace;
    const { withWeight, inStructure } = this.#influences;
    const count = values.length / k;
    const perRow = scales === null ? 0 : scales.length / count;
    const [known, knownZeros] = [new Keys(), new Keys()];
    const [rows, patterns]: [Row[], Row[]] = [[], []];
    // The sets of the elements, what zeros they are, and the sets of the factors.
    const key = new Uint32Array(3 * k + 2);
    const zeros = key.subarray(2 * k, 3 * k);
    const [kinds, zerosOf] = [new Uint32Array(count), new Uint32Array(count)];
    for (let i = 0; i < count; i++) {
      const own = values.subarray(i * k, (i + 1) * k);
      for (let x = 0; x < k; x++) {
        const value = own[x];
        key[2 * x] = withWeight[value];
        key[2 * x + 1] = inStructure[value];
        if (!isZero(trace, value)) zeros[x] = noZero;
        else zeros[x] = withWeight[value] === emptySet ? settledZero : varyingZero;
      }
      if (scales !== null)
        key.set(this.#unionOf(scales.subarray(i * perRow, (i + 1) * perRow)), 3 * k);
      kinds[i] = known.of(key);
      zerosOf[i] = knownZeros.of(zeros);
      if (kinds[i] < rows.length) continue;
      const row = this.#row(own, zeros, [key[3 * k], key[3 * k + 1]]);
      rows.push(row);
      if (zerosOf[i] === patterns.length) patterns.push(row);
    }
    return { kinds, zeros: zerosOf, rows, patterns };
  }

  /**
   * What rows bring to D beside each pattern of zeros of the other matrix. Where both factors are zero, a settled one swallows the
   * other; else that of A does.
   */
  #shares({ rows }: Rows, { patterns }: Rows, isOfA: boolean): Shares {
    const { sets } = this.#influences;
    const size = rows.length * patterns.length;
    const [withWeight, inStructure] = [new Uint32Array(size), new Uint32Array(size)];
    rows.forEach((row, r) =>
      patterns.forEach((other, p) => {
        let [weight, structure] = [row.scales[0], sets.union(row.structure, row.scales[1])];
        for (const { set, elements } of row.sets) {
          let [counted, swallowed] = [0, 0];
          elements.forEach((bits, i) => {
            const gone =
              other.settled[i] | (isOfA ? other.varying[i] & ~row.varying[i] : other.varying[i]);
            counted |= bits & ~gone;
            swallowed |= bits & gone;
          });
          if (counted !== 0) weight = sets.union(weight, set);
          if (swallowed !== 0) structure = sets.union(structure, set);
        }
        withWeight[r * patterns.length + p] = weight;
        inStructure[r * patterns.length + p] = structure;
      }),
    );
    return { withWeight, inStructure, patterns: patterns.length };
  }

  /** Finds what reaches the elements of a product. */
  take(product: ProductTrace): void {
    const { m, n, k, a, b, scales } = product;
    const [wholeA, wholeB] = [
      this.#wholeShares(a, k, scales?.a ?? null),
      this.#wholeShares(b, k, scales?.b ?? null),
    ];
    if (wholeA !== null && wholeB !== null) {
      const plain = (count: number): Lines => ({
        kinds: Uint32Array.from({ length: count }, (_, i) => i),
        zeros: new Uint32Array(count),
      });
      this.#put(product, [plain(m), plain(n)], [wholeA, wholeB]);
      return;
    }
    const [left, right] = [
      this.#rows(a, k, scales?.a ?? null),
      this.#rows(b, k, scales?.b ?? null),
    ];
    this.#put(
      product,
      [left, right],
      [this.#shares(left, right, true), this.#shares(right, left, false)],
    );
  }

  #put(
    { m, n, c, first }: ProductTrace,
    [left, right]: readonly [Lines, Lines],
    [ofA, ofB]: readonly [Shares, Shares],
  ): void {
    const { sets, withWeight, inStructure } = this.#influences;
    // Neighbours are often alike.
    let [lastOfA, lastOfB, lastWeight, lastStructure] = [-1, -1, -1, -1];
    let [weight, structure]: [number, number] = [emptySet, emptySet];
    for (let d = 0; d < m * n; d++) {
      const [i, j] = [Math.floor(d / n), d % n];
      const shareOfA = left.kinds[i] * ofA.patterns + right.zeros[j];
      const shareOfB = right.kinds[j] * ofB.patterns + left.zeros[i];
      const startWeight = c === null ? emptySet : withWeight[c[d]];
      const startStructure = c === null ? emptySet : inStructure[c[d]];
      if (
        shareOfA !== lastOfA ||
        shareOfB !== lastOfB ||
        startWeight !== lastWeight ||
        startStructure !== lastStructure
      ) {
        const ofBoth = sets.union(ofA.withWeight[shareOfA], ofB.withWeight[shareOfB]);
        const inBoth = sets.union(ofA.inStructure[shareOfA], ofB.inStructure[shareOfB]);
        weight = sets.union(startWeight, ofBoth);
        structure = sets.union(startStructure, inBoth);
        [lastOfA, lastOfB, lastWeight, lastStructure] = [
          shareOfA,
          shareOfB,
          startWeight,
          startStructure,
        ];
      }
      withWeight[first + d] = weight;
      inStructure[first + d] = structure;
    }
  }
}
