/** Textbook attention in fp64, one row at a time, with a hook for every step that a kernel may get wrong. */
import { decodeTensor } from '../../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../../src/problem/index.js';

/** A query and a key of a head. */
export interface At {
  readonly batch: number;
  readonly head: number;
  readonly kvHead: number;
  readonly query: number;
  readonly key: number;
}

/** Where a row is. */
export type RowAt = Omit<At, 'key'>;

/** What a faulty kernel does otherwise; what is left out is done as it should be. */
export interface Fault {
  readonly q?: (at: RowAt, t: number) => number;
  readonly k?: (at: At, t: number) => number;
  readonly v?: (at: At, column: number) => number;
  readonly score?: (dot: number, at: At) => number;
  readonly sees?: (at: At) => boolean;
  /** What the exponentials that make the output are multiplied by, and those that make the sum. */
  readonly inOutput?: (at: At) => number;
  readonly inSum?: (at: At) => number;
  /** What joins the sum, of the largest score. */
  readonly added?: (maximum: number, at: RowAt) => number;
  /** The same, of the LSE; that of `added` where it is left out. */
  readonly addedInLse?: (maximum: number, at: RowAt) => number;
  /** What the LSE becomes; NaN where a hypothesis says nothing of it. */
  readonly lse?: (lse: number, row: { readonly maximum: number; readonly at: RowAt }) => number;
}

/** One row of output, and its LSE. */
export interface TextbookRow {
  readonly out: Float64Array;
  readonly lse: number;
}

/** The tensors of a problem by index. */
export class Textbook {
  readonly shape: ProblemShape;
  readonly problem: Problem;
  readonly #q: Float64Array;
  readonly #k: Float64Array;
  readonly #v: Float64Array;

  constructor(problem: Problem) {
    this.problem = problem;
    this.shape = problemShape(problem);
    [this.#q, this.#k, this.#v] = [problem.q, problem.k, problem.v].map((one) => decodeTensor(one));
  }

  q(batch: number, head: number, query: number, t: number): number {
    const { heads, queries, qkDim } = this.shape;
    return this.#q[((batch * heads + head) * queries + query) * qkDim + t];
  }

  k(batch: number, kvHead: number, key: number, t: number): number {
    const { kvHeads, keys, qkDim } = this.shape;
    return this.#k[((batch * kvHeads + kvHead) * keys + key) * qkDim + t];
  }

  v(batch: number, kvHead: number, key: number, column: number): number {
    const { kvHeads, keys, vDim } = this.shape;
    return this.#v[((batch * kvHeads + kvHead) * keys + key) * vDim + column];
  }

  /** The score of a dot product, with softcap. */
  score(dot: number): number {
    const { scale, softcap } = this.problem;
    return softcap === null ? scale * dot : softcap * Math.tanh((scale * dot) / softcap);
  }

  /** Causal and window masks about the bottom right. */
  sees({ query, key }: Pick<At, 'query' | 'key'>): boolean {
    const { causal, window } = this.problem;
    const by = key - (query + this.shape.keys - this.shape.queries);
    if (causal && by > 0) return false;
    if (window === null) return true;
    return (window.left < 0 || by >= -window.left) && (window.right < 0 || by <= window.right);
  }

  rowAt(row: number): RowAt {
    const { heads, queries, groupSize } = this.shape;
    const head = Math.floor(row / queries) % heads;
    return {
      batch: Math.floor(row / queries / heads),
      head,
      kvHead: Math.floor(head / groupSize),
      query: row % queries,
    };
  }

  /** The dot product of a row with a key. */
  dot(at: At, fault: Pick<Fault, 'q' | 'k'> = {}): number {
    const q = fault.q ?? ((one: RowAt, t: number) => this.q(one.batch, one.head, one.query, t));
    const k = fault.k ?? ((one: At, t: number) => this.k(one.batch, one.kvHead, one.key, t));
    let dot = 0;
    for (let t = 0; t < this.shape.qkDim; t++) dot += q(at, t) * k(at, t);
    return dot;
  }

  /** Scores of a row, −∞ where it sees nothing. */
  scores(row: number, fault: Fault = {}): Float64Array {
    const sees = fault.sees ?? ((at: At) => this.sees(at));
    const score = fault.score ?? ((dot: number) => this.score(dot));
    return Float64Array.from({ length: this.shape.keys }, (_, key) => {
      const at = { ...this.rowAt(row), key };
      return sees(at) ? score(this.dot(at, fault), at) : -Infinity;
    });
  }

  row(row: number, fault: Fault = {}): TextbookRow {
    const at = this.rowAt(row);
    const { keys, vDim } = this.shape;
    const v = fault.v ?? ((one: At, c: number) => this.v(one.batch, one.kvHead, one.key, c));
    const scores = this.scores(row, fault);
    const out = new Float64Array(vDim);
    const maximum = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    if (maximum === -Infinity) return { out, lse: -Infinity };
    let ofKeys = 0;
    for (let key = 0; key < keys; key++) {
      if (scores[key] === -Infinity) continue;
      const p = Math.exp(scores[key] - maximum);
      const place = { ...at, key };
      ofKeys += p * (fault.inSum?.(place) ?? 1);
      for (let c = 0; c < vDim; c++) out[c] += p * (fault.inOutput?.(place) ?? 1) * v(place, c);
    }
    const added = fault.added ?? (() => 0);
    const sum = ofKeys + added(maximum, at);
    const own = maximum + Math.log(ofKeys + (fault.addedInLse ?? added)(maximum, at));
    return { out: out.map((x) => x / sum), lse: fault.lse?.(own, { maximum, at }) ?? own };
  }

  /** All rows, as an output and an LSE. */
  rows(fault: Fault = {}): { readonly out: Float64Array; readonly lse: Float64Array } {
    const { batch, heads, queries } = this.shape;
    const rows = Array.from({ length: batch * heads * queries }, (_, row) => this.row(row, fault));
    return {
      out: Float64Array.from(rows.flatMap(({ out }) => [...out])),
      lse: Float64Array.from(rows, ({ lse }) => lse),
    };
  }
}
