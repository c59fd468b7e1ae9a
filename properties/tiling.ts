import { RequestError } from '../src/request-error.js';

/** The order in which a kernel visits the blocks of keys. */
export type BlockOrder = 'first-to-last' | 'last-to-first';

/** What the regimes that depend on blocks of keys assume of a kernel. */
export interface Tiling {
  /** Keys per block. */
  readonly blockKeys: number;
  /** log2 of the growth of the maximum from block to block that the regimes of steps stay beside. */
  readonly threshold: number;
  /** The direction in which maxima grow; drawn for each problem where it is left out. */
  readonly order?: BlockOrder | undefined;
}

/** FlashAttention-4's block of keys, and its threshold for 16-bit inputs. */
export const usualTiling: Tiling = { blockKeys: 128, threshold: 8 };

/** How far beside the threshold the regimes of steps are, in log2. */
export const besideThreshold = 1 / 16;

const blockOrders: readonly string[] = ['first-to-last', 'last-to-first'] satisfies BlockOrder[];

/**
 * A tiling with its defaults filled in. A threshold of 0 is that of a kernel that always rescales.
 * @throws RequestError for a block that is no positive whole number, a threshold that is no multiple
 * of 1/16 from 0, and an order that there is not
 */
export function resolveTiling(given: Partial<Tiling> = {}): Tiling {
  const tiling = { ...usualTiling, ...given };
  const { blockKeys, threshold, order } = tiling;
  if (!(Number.isSafeInteger(blockKeys) && blockKeys >= 1))
    throw new RequestError(
      `constraint tiling.blockKeys is ${blockKeys}; give a whole number from 1`,
    );
  if (!(threshold >= 0 && Number.isInteger(threshold / besideThreshold)))
    throw new RequestError(
      `constraint tiling.threshold is ${threshold}; give a multiple of ${besideThreshold} from 0, such as ${usualTiling.threshold}`,
    );
  if (order !== undefined && !blockOrders.includes(order))
    throw new RequestError(
      `constraint tiling.order is ${JSON.stringify(order)}; choose from ${blockOrders.join(', ')}`,
    );
  return tiling;
}
