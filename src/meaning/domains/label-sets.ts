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
  /**
   * Four words a node: the number of a leaf's word, or of the first word that a branch may have; the bit of the word's number by
   * which a branch decides, 0 of a leaf; a leaf's bits, or the child where the bit is 0; the child where it is 1.
   */
  #words = new Uint32Array(4 * firstCapacity);
  /** Numbers of nodes by their content; at most half is taken. */
  #nodes = new Uint32Array(2 * firstCapacity);
  /** The unions computed lately, by their operands: three words each. */
  readonly #unions = new Uint32Array(3 * keptUnions);
  /** The first two are the empty set and that of any labels. */
  #count = 2;

  /** Bytes that the sets take. */
  get bytes(): number {
    return 4 * (this.#words.length + this.#nodes.length + this.#unions.length);
  }

  #prefixOf(node: number): number {
    return this.#words[4 * node];
  }

  #branchOf(node: number): number {
    return this.#words[4 * node + 1];
  }

  #leftOf(node: number): number {
    return this.#words[4 * node + 2];
  }

  #rightOf(node: number): number {
    return this.#words[4 * node + 3];
  }

  #grow(): void {
    const words = new Uint32Array(2 * this.#words.length);
    words.set(this.#words);
    this.#words = words;
    const nodes = new Uint32Array(2 * this.#nodes.length);
    for (let node = 2; node < this.#count; node++) {
      const at = 4 * node;
      let slot = slotOf(words[at] ^ words[at + 1], words[at + 2], words[at + 3], nodes.length);
      while (nodes[slot] !== 0) slot = (slot + 1) & (nodes.length - 1);
      nodes[slot] = node;
    }
    this.#nodes = nodes;
  }

  #node(prefix: number, branch: number, left: number, right: number): number {
    const nodes = this.#nodes;
    const words = this.#words;
    let slot = slotOf(prefix ^ branch, left, right, nodes.length);
    for (let known = nodes[slot]; known !== 0; known = nodes[slot]) {
      const at = 4 * known;
      if (
        words[at + 2] === left >>> 0 &&
        words[at + 3] === right &&
        words[at] === prefix &&
        words[at + 1] === branch
      )
        return known;
      slot = (slot + 1) & (nodes.length - 1);
    }
    const node = this.#count++;
    const at = 4 * node;
    words[at] = prefix;
    words[at + 1] = branch;
    words[at + 2] = left;
    words[at + 3] = right;
    nodes[slot] = node;
    if (4 * this.#count === words.length) this.#grow();
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
    const [p, q] = [this.#prefixOf(x), this.#prefixOf(y)];
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
    return (word & ~(2 * this.#branchOf(branch) - 1)) >>> 0 === this.#prefixOf(branch);
  }

  #merged(x: number, y: number): number {
    const [p, q] = [this.#prefixOf(x), this.#prefixOf(y)];
    const [over, under] = this.#branchOf(x) >= this.#branchOf(y) ? [x, y] : [y, x];
    const branch = this.#branchOf(over);
    if (branch === 0)
      return p === q ? this.#node(p, 0, this.#leftOf(x) | this.#leftOf(y), 0) : this.#joined(x, y);
    if (!this.#covers(over, this.#prefixOf(under))) return this.#joined(x, y);
    const [left, right] = [this.#leftOf(over), this.#rightOf(over)];
    const prefix = this.#prefixOf(over);
    if (branch === this.#branchOf(under))
      return this.#node(
        prefix,
        branch,
        this.union(left, this.#leftOf(under)),
        this.union(right, this.#rightOf(under)),
      );
    return (this.#prefixOf(under) & branch) === 0
      ? this.#node(prefix, branch, this.union(left, under), right)
      : this.#node(prefix, branch, left, this.union(right, under));
  }

  /** The labels of a set that another one lacks: of `anySet` still any, and none without `anySet`. */
  difference(x: number, y: number): number {
    if (x === y || x === emptySet || y === anySet) return emptySet;
    if (x === anySet || y === emptySet) return x;
    const [bx, by] = [this.#branchOf(x), this.#branchOf(y)];
    if (bx === 0 && by === 0) {
      if (this.#prefixOf(x) !== this.#prefixOf(y)) return x;
      const rest = this.#leftOf(x) & ~this.#leftOf(y);
      return rest === 0 ? emptySet : this.#node(this.#prefixOf(x), 0, rest, 0);
    }
    if (bx < by) {
      if (!this.#covers(y, this.#prefixOf(x))) return x;
      return this.difference(
        x,
        (this.#prefixOf(x) & by) === 0 ? this.#leftOf(y) : this.#rightOf(y),
      );
    }
    if (!this.#covers(x, this.#prefixOf(y))) return x;
    const isBelow = bx > by;
    const isLeft = (this.#prefixOf(y) & bx) === 0;
    const [ofLeft, ofRight] = isBelow
      ? [isLeft ? y : emptySet, isLeft ? emptySet : y]
      : [this.#leftOf(y), this.#rightOf(y)];
    const left = this.difference(this.#leftOf(x), ofLeft);
    const right = this.difference(this.#rightOf(x), ofRight);
    if (left === emptySet || right === emptySet) return left + right;
    return this.#node(this.#prefixOf(x), bx, left, right);
  }

  /** The number of labels of a set; infinite of `anySet`. */
  sizeOf(set: number): number {
    if (set === emptySet) return 0;
    if (set === anySet) return Infinity;
    if (this.#branchOf(set) === 0) return ones(this.#leftOf(set));
    return this.sizeOf(this.#leftOf(set)) + this.sizeOf(this.#rightOf(set));
  }

  /** The labels of a set, ascending; none of `anySet`, whose labels are unknown. */
  *labelsOf(set: number): Generator<number> {
    if (set <= anySet) return;
    if (this.#branchOf(set) !== 0) {
      yield* this.labelsOf(this.#leftOf(set));
      yield* this.labelsOf(this.#rightOf(set));
      return;
    }
    for (let bit = 0; bit < 32; bit++)
      if (((this.#leftOf(set) >>> bit) & 1) === 1) yield this.#prefixOf(set) * 32 + bit;
  }
}
