import { keysOf, type KeyRange, type ScoreLaw } from '../../src/problem/index.js';
import { classifyDot, scoreClass } from '../attention/special-values.js';
import type { GradientOperands } from './operands.js';
import type { Gradient } from './sums.js';

/** The elements of a gradient that special values make NaN or infinite; no memory where there are none. */
export interface PoisonedElements {
  /** Adds NaN or an infinity to an element; nothing for 0. The sum decides. */
  readonly add: (at: number, kind: number) => void;
  /** The elements so far, with their sums. */
  readonly kinds: () => ReadonlyMap<number, number>;
}

export function poisonedElements(): PoisonedElements {
  const sums = new Map<number, number>();
  return {
    add: (at, kind) => {
      if (kind !== 0) sums.set(at, (sums.get(at) ?? 0) + kind);
    },
    kinds: () => sums,
  };
}

/** Replaces computed elements by their NaNs and infinities. */
export function applyPoison(
  { values, radius, magnitude }: Gradient,
  poisoned: PoisonedElements,
): void {
  for (const [at, kind] of poisoned.kinds()) {
    values[at] = kind;
    radius[at] = 0;
    magnitude[at] = Math.abs(kind);
  }
}

/** Records elements that become NaN or infinite: a kind of 0 changes nothing, and the sum of the kinds decides. */
export interface Poison {
  readonly query: (column: number, kind: number) => void;
  readonly key: (key: number, column: number, kind: number) => void;
  readonly value: (key: number, column: number, kind: number) => void;
  /** dS of a key, and D = Σ P dP of the row. */
  readonly score: (key: number, kind: number) => void;
  readonly mean: (kind: number) => void;
}

/** The part of a row that is left to compute: the keys with a weight. */
export interface FiniteKeys {
  readonly visible: Int32Array;
  /** Per key 0, or ±1 where the score is ±∞ before the softcap. */
  readonly infinite: Int8Array;
  /** Whether all keys that the row sees are there, with scores of their own. */
  readonly isWhole: boolean;
}

/** The keys that a row sees, by the kinds of their scores. */
interface Scores {
  /** Keys with a weight, and the signs of the infinite scores that a softcap has made finite. */
  readonly weighted: Map<number, number>;
  readonly weightless: Set<number>;
  /** NaN and +∞, under which no weight is known. */
  readonly isLost: boolean;
}

function classifyScores(
  { query, keys }: GradientOperands,
  row: number,
  visible: readonly number[],
  law: ScoreLaw,
): Scores {
  const weighted = new Map<number, number>();
  const weightless = new Set<number>();
  let isLost = false;
  for (const key of visible) {
    const kind = scoreClass(query, row, keys, key, law);
    if (Number.isNaN(kind) || (kind > 0 && law.softcap === null)) isLost = true;
    else if (kind === 0 || law.softcap !== null) weighted.set(key, Math.sign(kind));
    else weightless.add(key);
  }
  return { weighted, weightless, isLost };
}

/**
 * The law for infinities and NaNs in gradients: IEEE 754 carried through the formulas in exact arithmetic, over the
 * keys that a row sees (others have no influence).
 * - A NaN score, or one of +∞ without a softcap, makes every P of the row NaN: dQ, dS, D and the row's contributions
 *   to dK and dV of the keys it sees.
 * - A score of −∞ has P = 0. A softcap turns ±∞ into ±cap, with a slope of 0.
 * - dP = dO·v is NaN or infinite where dO or v is; so is D, and dS = P·(dP − D) of all keys: NaN where both are
 *   infinite alike or P is 0, else infinite. A key that dropout does not keep has NaN there (0·∞).
 * - An infinity or a NaN in K or Q times a finite dT is NaN: dT is 0 there.
 * - An infinity or a NaN in dO adds itself to dV under a positive weight, NaN under a weight of 0.
 *
 * @returns null where none of the row's inputs is special; no keys where nothing is left to compute
 */
export function specialGradients(
  operands: GradientOperands,
  row: number,
  ranges: readonly KeyRange[],
  { law, isKept }: { readonly law: ScoreLaw; readonly isKept: (key: number) => boolean },
  poison: Poison,
): FiniteKeys | null {
  const { query, keys, values, dout } = operands;
  const visible = [...keysOf(ranges)];
  const isSpecial = (key: number) => keys.special[key] !== 0 || values.special[key] !== 0;
  if (query.special[row] === 0 && dout.special[row] === 0 && !visible.some(isSpecial)) return null;
  const { weighted, weightless, isLost } = classifyScores(operands, row, visible, law);
  const columns = (dim: number, visit: (column: number) => void) => {
    for (let c = 0; c < dim; c++) visit(c);
  };
  if (isLost) {
    columns(query.dim, (c) => poison.query(c, NaN));
    poison.mean(NaN);
    for (const key of visible) {
      columns(query.dim, (c) => poison.key(key, c, NaN));
      columns(values.dim, (c) => poison.value(key, c, NaN));
      poison.score(key, NaN);
    }
    return { visible: new Int32Array(), infinite: new Int8Array(), isWhole: false };
  }
  const products = visible.map((key) => {
    const hasSpecial = dout.special[row] !== 0 || values.special[key] !== 0;
    const kind = hasSpecial ? classifyDot(dout, row, values, key) : 0;
    return kind !== 0 && !isKept(key) ? NaN : kind;
  });
  const mean = visible.reduce(
    (sum, key, j) => sum + (products[j] !== 0 && weightless.has(key) ? NaN : products[j]),
    0,
  );
  poison.mean(mean);
  visible.forEach((key, j) => {
    const difference = products[j] - mean;
    const ds = difference !== 0 && weightless.has(key) ? NaN : difference;
    poison.score(key, ds);
    // No slope where a softcap is flat; keys without a weight have a dS of 0 or NaN, whatever the slope.
    const dt = ds * (weighted.get(key) === 0 ? law.scale : 0);
    columns(query.dim, (c) => {
      poison.query(c, dt * keys.raw(key, c));
      poison.key(key, c, dt * query.raw(row, c));
    });
    const isWeighted = weighted.has(key) && isKept(key);
    if (dout.special[row] !== 0)
      columns(values.dim, (c) => {
        const x = dout.raw(row, c);
        if (!Number.isFinite(x)) poison.value(key, c, isWeighted ? x : NaN);
      });
  });
  const kinds = [...weighted.values()];
  return {
    visible: Int32Array.from(weighted.keys()),
    infinite: Int8Array.from(kinds),
    isWhole: weightless.size === 0 && kinds.every((kind) => kind === 0),
  };
}
