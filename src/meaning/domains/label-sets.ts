/** Numbers of the set of no label, and of the set of which nothing is known: it may have every label. */
export const [emptySet, anySet] = [0, 1] as const;

const firstCapacity = 2 ** 12;
/** As many as fit into a cache of a core. */
const keptUnions = 2 ** 15;
/** Labels of a leaf: the bits of a word. */
const leafBits = 5;

/** A slot of a table of a power of two for three words (constants of MurmurHash3). */
function slotOf(x: number, y: number, z: number, capacity: number): number {
  let hash =
    Math.imul(x, 0xcc9e2d51) ^
    Math.imul((y << 13) | (y >>> 19), 0x1b873593) ^
    Math.imul(z, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35);
  return (hash ^ (hash >>> 15)) & (capacity - 1);
}

/** The number of ones of a word. */
function ones(word: number): number {
  let count = 0;
  for (let rest = word; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/**
 * Sets of labels, integers from 0 to 2^31 − 1, by numbers: equal sets have equal numbers. A set is a binary trie over the words of
 * its bits that leaves out branches with one child; equal tries are kept once, so that sets share what they have in common. A set
 * with one label more takes as many new nodes as lie above it. Source: Okasaki and Gill, Fast Mergeable Integer Maps, 1998.
 */
export class LabelSets {
  /** Of a leaf: the number of its word; of a branch: that of the first word that it may have. */
  #prefix = new Uint32Array(firstCapacity);
  /** Of a branch: the bit of the word's number by which it decides; 0 of a leaf. */
  #branch = new Uint32Array(firstCapacity);
  /** Of a leaf: the bits; of a branch: the child where the bit is 0. */
  #left = new Uint32Array(firstCapacity);
  #right = new Uint32Array(firstCapacity);
  /** Numbers of nodes by their content; at most half is taken. */
  #nodes = new Uint32Array(2 * firstCapacity);
  /** The unions computed lately, by their operands: three words each. */
  readonly #unions = new Uint32Array(3 * keptUnions);
  /** The first two are the empty set and that of any labels. */
  #count = 2;

  /** Bytes that the sets take. */
  get bytes(): number {
    return 4 * (4 * this.#prefix.length + this.#nodes.length + this.#unions.length);
  }

  #grow(): void {
    const capacity = 2 * this.#prefix.length;
    const grown = (column: Uint32Array) => {
      const next = new Uint32Array(capacity);
      next.set(column);
      return next;
    };
    this.#prefix = grown(this.#prefix);
    this.#branch = grown(this.#branch);
    this.#left = grown(this.#left);
    this.#right = grown(this.#right);
    this.#nodes = new Uint32Array(2 * capacity);
    for (let node = 2; node < this.#count; node++) this.#nodes[this.#place(node)] = node;
  }

  /** The slot of a node that is not in the table. */
  #place(node: number): number {
    const { length } = this.#nodes;
    let slot = slotOf(
      this.#prefix[node] ^ this.#branch[node],
      this.#left[node],
      this.#right[node],
      length,
    );
    while (this.#nodes[slot] !== 0) slot = (slot + 1) & (length - 1);
    return slot;
  }

  #node(prefix: number, branch: number, left: number, right: number): number {
    const { length } = this.#nodes;
    let slot = slotOf(prefix ^ branch, left, right, length);
    for (;;) {
      const known = this.#nodes[slot];
      if (known === 0) break;
      if (
        this.#left[known] === left >>> 0 &&
        this.#right[known] === right &&
        this.#prefix[known] === prefix &&
        this.#branch[known] === branch
      )
        return known;
      slot = (slot + 1) & (length - 1);
    }
    const node = this.#count++;
    this.#prefix[node] = prefix;
    this.#branch[node] = branch;
    this.#left[node] = left;
    this.#right[node] = right;
    this.#nodes[slot] = node;
    if (this.#count === this.#prefix.length) this.#grow();
    return node;
  }

  /** The set of one label. */
  single(label: number): number {
    return this.#node(label >>> leafBits, 0, 1 << (label & 31), 0);
  }

  /** The set of some labels. */
  of(labels: Iterable<number>): number {
    let set: number = emptySet;
    for (const label of labels) set = this.union(set, this.single(label));
    return set;
  }

  /** The branch over two tries of different words. */
  #joined(x: number, y: number): number {
    const [p, q] = [this.#prefix[x], this.#prefix[y]];
    const branch = 2 ** (31 - Math.clz32(p ^ q));
    const prefix = p & ~(2 * branch - 1);
    return p < q ? this.#node(prefix, branch, x, y) : this.#node(prefix, branch, y, x);
  }

  /** The labels of both sets. */
  union(x: number, y: number): number {
    if (x === y || y === emptySet) return x;
    if (x === emptySet) return y;
    if (x === anySet || y === anySet) return anySet;
    const [low, high] = x < y ? [x, y] : [y, x];
    const at = 3 * slotOf(low, high, 0, keptUnions);
    if (this.#unions[at] === low && this.#unions[at + 1] === high) return this.#unions[at + 2];
    const union = this.#merged(low, high);
    this.#unions[at] = low;
    this.#unions[at + 1] = high;
    this.#unions[at + 2] = union;
    return union;
  }

  /** Whether a word may lie below a branch. */
  #covers(branch: number, word: number): boolean {
    return (word & ~(2 * this.#branch[branch] - 1)) >>> 0 === this.#prefix[branch];
  }

  #merged(x: number, y: number): number {
    const [p, q] = [this.#prefix[x], this.#prefix[y]];
    const [over, under] = this.#branch[x] >= this.#branch[y] ? [x, y] : [y, x];
    const branch = this.#branch[over];
    if (branch === 0)
      return p === q ? this.#node(p, 0, this.#left[x] | this.#left[y], 0) : this.#joined(x, y);
    if (!this.#covers(over, this.#prefix[under])) return this.#joined(x, y);
    const [left, right] = [this.#left[over], this.#right[over]];
    const prefix = this.#prefix[over];
    if (branch === this.#branch[under])
      return this.#node(
        prefix,
        branch,
        this.union(left, this.#left[under]),
        this.union(right, this.#right[under]),
      );
    return (this.#prefix[under] & branch) === 0
      ? this.#node(prefix, branch, this.union(left, under), right)
      : this.#node(prefix, branch, left, this.union(right, under));
  }

  /** The labels of a set that another one lacks: of `anySet` still any, and none without `anySet`. */
  difference(x: number, y: number): number {
    if (x === y || x === emptySet || y === anySet) return emptySet;
    if (x === anySet || y === emptySet) return x;
    const [bx, by] = [this.#branch[x], this.#branch[y]];
    if (bx === 0 && by === 0) {
      if (this.#prefix[x] !== this.#prefix[y]) return x;
      const rest = this.#left[x] & ~this.#left[y];
      return rest === 0 ? emptySet : this.#node(this.#prefix[x], 0, rest, 0);
    }
    if (bx < by) {
      if (!this.#covers(y, this.#prefix[x])) return x;
      return this.difference(x, (this.#prefix[x] & by) === 0 ? this.#left[y] : this.#right[y]);
    }
    if (!this.#covers(x, this.#prefix[y])) return x;
    const isBelow = bx > by;
    const isLeft = (this.#prefix[y] & bx) === 0;
    const [ofLeft, ofRight] = isBelow
      ? [isLeft ? y : emptySet, isLeft ? emptySet : y]
      : [this.#left[y], this.#right[y]];
    const left = this.difference(this.#left[x], ofLeft);
    const right = this.difference(this.#right[x], ofRight);
    if (left === emptySet || right === emptySet) return left + right;
    return this.#node(this.#prefix[x], bx, left, right);
  }

  /** The number of labels of a set; infinite of `anySet`. */
  sizeOf(set: number): number {
    if (set === emptySet) return 0;
    if (set === anySet) return Infinity;
    if (this.#branch[set] === 0) return ones(this.#left[set]);
    return this.sizeOf(this.#left[set]) + this.sizeOf(this.#right[set]);
  }

  /** The labels of a set, ascending; none of `anySet`, whose labels are unknown. */
  *labelsOf(set: number): Generator<number> {
    if (set <= anySet) return;
    if (this.#branch[set] !== 0) {
      yield* this.labelsOf(this.#left[set]);
      yield* this.labelsOf(this.#right[set]);
      return;
    }
    for (let bit = 0; bit < 32; bit++)
      if (((this.#left[set] >>> bit) & 1) === 1) yield this.#prefix[set] * 32 + bit;
  }
}
