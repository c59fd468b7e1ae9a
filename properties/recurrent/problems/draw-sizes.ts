import type { RecurrentConstraints } from './constraints.js';
import type { RandomValues } from '../../problems/index.js';

/** The sizes of a problem. */
export interface RecurrentSizes {
  readonly lengths: readonly number[];
  readonly isPacked: boolean;
  readonly keyHeads: number;
  readonly groupSize: number;
  readonly keyDim: number;
  readonly valueDim: number;
}

/** The most elements that states have in all tokens together, which is what a problem costs. */
const mostElements = 2 ** 16;

/** One of some things. */
export function oneOf<T>(things: readonly T[], random: RandomValues): T {
  return things[random.integer(0, things.length - 1)];
}

/** A length beside a multiple of the chunk. */
export function lengthAtEdge(chunk: number, random: RandomValues): number {
  const length = chunk * random.integer(1, 2) + oneOf([-1, 0, 1], random);
  return Math.max(1, length);
}

/** Tokens of a sequence: often a few, sometimes beside a multiple of the chunk, else any up to two chunks. */
function drawLength(chunk: number, random: RandomValues): number {
  const choice = random.integer(0, 3);
  if (choice >= 2) return random.integer(1, 8);
  return choice === 1 ? lengthAtEdge(chunk, random) : random.integer(1, 2 * chunk + 1);
}

/** A dimension in a range; the smallest that is promised where none is in it. */
function drawDim(
  dims: RecurrentConstraints['dims'],
  { least = 1, most }: { readonly least?: number; readonly most: number },
  random: RandomValues,
): number {
  if (dims === null) return random.integer(least, Math.max(least, most));
  const fitting = dims.filter((dim) => least <= dim && dim <= most);
  return fitting.length > 0 ? oneOf(fitting, random) : Math.min(...dims);
}

/** Sizes that a regime gives. */
interface GivenSizes {
  readonly lengths: readonly number[] | null;
  readonly leastKeyDim: (lengths: readonly number[]) => number;
}

/**
 * Sizes of a problem.
 * @param given lengths of its sequences, or null to draw them; and the fewest key dimensions for them
 */
export function drawSizes(
  { dims, groupSizes, packed, chunk }: RecurrentConstraints,
  { lengths, leastKeyDim }: GivenSizes,
  random: RandomValues,
): RecurrentSizes {
  const count = random.integer(0, 2) === 0 ? random.integer(2, 3) : 1;
  const length = drawLength(chunk, random);
  const others = Array.from({ length: count - 1 }, () => random.integer(0, 2 * chunk));
  const isPacked = packed && (lengths === null ? random.uniform() < 0.4 : lengths.length > 1);
  const drawn =
    lengths ?? (isPacked ? [length, ...others] : Array.from({ length: count }, () => length));
  const tokens = Math.max(
    1,
    drawn.reduce((sum, one) => sum + one, 0),
  );
  const keyHeads = random.integer(1, 2);
  const groupSize = groupSizes === null ? oneOf([1, 1, 2, 3], random) : oneOf(groupSizes, random);
  const room = mostElements / (tokens * keyHeads * groupSize);
  const valueDim = drawDim(dims, { most: Math.min(32, Math.floor(Math.sqrt(room) * 2)) }, random);
  const most = Math.min(32, Math.floor(room / valueDim));
  const keyDim = drawDim(dims, { least: leastKeyDim(drawn), most }, random);
  return { lengths: drawn, isPacked, keyHeads, groupSize, keyDim, valueDim };
}
