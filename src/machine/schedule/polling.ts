import { type Fragment, type Instruction, type Opcode, siteOf } from '../isa/index.js';
import type { WarpState } from '../state.js';

/** Instructions that a warp may execute between two polls, and that no other agent can wait for. */
const betweenLooks: ReadonlySet<Opcode> = new Set([
  ...(['fence', 'bar.warp.sync', 'diverge', 'converge'] as const),
]);

/** Results that a warp has seen at a place in the program: the hash of addresses and values. */
type Sights = Map<string, number>;

/** Distinguishes polling from progress. */
export interface PollingDetector {
  /**
   * Whether an instruction that has just been executed was a poll that showed nothing new: a load or an atomic of the same
   * addresses as at the warp's last time there, with the same result; `mbarrier.test_wait` that failed; or an instruction
   * between such polls.
   */
  readonly isPoll: (warp: WarpState, instruction: Instruction) => boolean;
}

/** FNV-1a on 32-bit words. */
function hashed(hash: number, word: number): number {
  return Math.imul(hash ^ word, 0x01000193);
}

function hashOf(
  { addresses }: { readonly addresses: Float64Array },
  values: Fragment | null,
): number {
  let hash = 0x811c9dc5;
  for (let lane = 0; lane < addresses.length; lane++) {
    hash = hashed(hash, addresses[lane] | 0);
    hash = hashed(hash, addresses[lane] / 2 ** 32);
  }
  if (values !== null) for (const word of values.words) hash = hashed(hash, word);
  return hash;
}

/** A detector without observations. Memory grows with warps × places in the program. */
export function createPollingDetector(): PollingDetector {
  const seen = new Map<WarpState, Sights>();

  function isSeen(warp: WarpState, site: string, hash: number): boolean {
    let sights = seen.get(warp);
    if (sights === undefined) seen.set(warp, (sights = new Map()));
    const isSame = sights.get(site) === hash;
    sights.set(site, hash);
    return isSame;
  }

  return {
    isPoll: (warp, instruction) => {
      switch (instruction.op) {
        case 'ld':
          return isSeen(warp, siteOf(instruction), hashOf(instruction, instruction.data));
        case 'atom':
          return isSeen(warp, siteOf(instruction), hashOf(instruction, instruction.result));
        case 'mbarrier.test_wait':
          return instruction.result.every((word) => word === 0);
        default:
          return betweenLooks.has(instruction.op);
      }
    },
  };
}
